"""store, get, list, history, edit, forget, recall, status: each with what it prints for programs and for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def record(memoryd: Run, *users: str, session: str = "s1") -> list[str]:
    """Turns with these user texts; gives their ids."""
    done = memoryd("turn", "--session", session, stdin="\n".join(json.dumps({"user": user, "assistant": "noted"}) for user in users))
    return [line["event_id"] for line in done.lines]


def test_store_and_get(memoryd: Run) -> None:
    stored = memoryd("store", "city", "Oslo", "--type", "fact", "--metadata", '{"from": "form"}', "--json")
    assert (stored.code, stored.json["accepted"]["state"]) == (0, "journaled")
    assert memoryd("get", "city").out == "Oslo\n"
    memory = memoryd("get", "--json", "city").json
    assert {key: memory[key] for key in ("key", "value", "user_id", "type")} == {
        "key": "city", "value": "Oslo", "user_id": "default", "type": "fact",
    }  # fmt: skip
    assert memory["metadata"]["from"] == "form"
    assert memory["created_at"] == memory["updated_at"]


def test_a_value_from_standard_input(memoryd: Run) -> None:
    assert memoryd("store", "notes", stdin="line 1\nline 2\n").code == 0
    assert memoryd("get", "notes", "--json").json["value"] == "line 1\nline 2\n"
    assert memoryd("store", "empty", "").code == 0
    assert memoryd("store", "notes", stdin="").code == 64, "a variable that was not set is no value"
    assert "line 1" in memoryd("get", "notes").out
    assert memoryd("get", "empty").out == "\n"


def test_what_is_not_there(memoryd: Run) -> None:
    done = memoryd("get", "nothing")
    assert (done.code, done.out, done.err) == (1, "", "memoryd: no memory found for key 'nothing'\n")
    assert memoryd("get", "nothing", "--json").json["error"]["type"] == "NotFound"
    assert memoryd("history", "nothing").code == 1


def test_list_and_history(memoryd: Run) -> None:
    for key, value in (("city", "Bergen"), ("food", "fish"), ("city", "Oslo")):
        memoryd("store", key, value)
    found = memoryd("list", "--json").json
    assert [(m["key"], m["value"]) for m in found["memories"]] == [("city", "Oslo"), ("food", "fish")]
    assert found["count"] == 2
    assert [line.split("\t")[0] for line in memoryd("list", "--limit", "1").out.splitlines()] == ["city"]
    versions = memoryd("history", "city", "--json").json["versions"]
    assert [v["value"] for v in versions] == ["Oslo", "Bergen"]
    assert versions[0]["valid_until"] is None
    assert versions[1]["valid_until"] is not None


def test_users_and_profiles_do_not_meet(memoryd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    memoryd("store", "city", "Oslo", "--user", "ada")
    assert memoryd("get", "city").code == 1
    assert memoryd("get", "city", "--user", "ada", "--profile", "work").code == 1
    monkeypatch.setenv("MEMORYD_USER", "ada")
    assert memoryd("get", "city").out == "Oslo\n"
    assert memoryd("get", "city", "--user", "default").code == 1


def test_recall(memoryd: Run) -> None:
    ids = record(memoryd, "The parking code is 4711.", "My sister Ada visits on 3 July.")
    memoryd("store", "parking", "level 3")
    found = memoryd("recall", "--json", "parking code").json
    assert found["behind"] == 0
    first = found["hits"][0]
    assert {"id", "turn_id", "kind", "text", "score", "at", "source"} <= set(first)
    assert ids[0] in [hit["id"] for hit in found["hits"]]
    assert "4711" in memoryd("recall", "parking code").out
    assert memoryd("recall", "", "--json").json["hits"] == []
    assert memoryd("recall", "parking", "--limit", "0", "--json").json["hits"] == []
    assert len(memoryd("recall", "parking", "--limit", "99999999999", "--json").json["hits"]) >= 2


def test_what_is_indexed_is_not_behind_however_short_the_wait(memoryd: Run) -> None:
    memoryd("store", "city", "Oslo")
    assert memoryd("recall", "oslo", "--json").json["behind"] == 0
    assert memoryd("recall", "oslo", "--json", "--wait", "0").json["behind"] == 0


def test_a_damaged_log_is_said(memoryd: Run, private_home: Path) -> None:
    memoryd("store", "city", "Oslo")
    (file,) = private_home.glob("profiles/*/log.db")
    file.write_bytes(b"damaged!" * 1024)
    done = memoryd("status")
    assert done.code == 1
    assert "last error StoreCorrupt" in done.out
    assert f"note: the log cannot be opened: {file} is damaged" in done.out
    for command in ("dead", "export"):
        done = memoryd(command)
        assert (done.code, done.out) == (1, "")
        assert "is damaged; nothing was deleted" in done.err


def test_a_damaged_memory_is_said(memoryd: Run, private_home: Path) -> None:
    memoryd("store", "city", "Oslo")
    (file,) = private_home.glob("profiles/*/memory.db")
    file.write_bytes(b"damaged!" * 1024)
    found = memoryd("recall", "harbour", "--wait", "0.1", "--json").json
    assert found["stale"] is True
    assert "memoryd status" in memoryd("recall", "oslo", "--wait", "0.1").err


def test_recall_in_one_session(memoryd: Run) -> None:
    record(memoryd, "apples in the first", session="s1")
    record(memoryd, "apples in the second", session="s2")
    assert len(memoryd("recall", "apples", "--json").json["hits"]) == 2
    assert [hit["session"] for hit in memoryd("recall", "apples", "--session", "s2", "--json").json["hits"]] == ["s2"]


@pytest.mark.parametrize("query", ['"', "AND OR NOT", "a* NEAR(b)", "col:x", "(((", "\x01", "--", "%_", "🙂"])
def test_a_query_is_never_syntax(memoryd: Run, query: str) -> None:
    record(memoryd, "something")
    assert memoryd("recall", "--json", "--", query).code == 0


def test_recalled_text_does_not_drive_the_terminal(memoryd: Run) -> None:
    record(memoryd, "danger \x1b]0;owned\x07 here")
    assert "\x1b" not in memoryd("recall", "danger").out
    assert "\x1b" in memoryd("recall", "danger", "--json").json["hits"][0]["text"]


def test_edit(memoryd: Run) -> None:
    (turn,) = record(memoryd, "I live in Olso")
    assert memoryd("edit", turn, "I live in Oslo").code == 0
    assert "Oslo" in memoryd("recall", "live").out
    memoryd("store", "city", "Olso")
    identity = memoryd("get", "city", "--json").json["id"]
    assert memoryd("edit", identity, "Oslo").code == 0
    assert memoryd("get", "city", "--json").json["id"] == identity
    assert memoryd("get", "city").out == "Oslo\n"
    missing = memoryd("edit", "0" * 32, "x", "--json")
    assert (missing.code, missing.json["error"]["field"]) == (1, "id")


def test_forget(memoryd: Run) -> None:
    turn, other = record(memoryd, "the secret word is plover", "nothing special")
    memoryd("store", "city", "Oslo")
    assert memoryd("forget", turn, "--json").json["erased"] >= 1
    assert memoryd("recall", "plover", "--json").json["hits"] == []
    assert memoryd("forget", "--key", "city").out.startswith("erased 1")
    assert memoryd("get", "city").code == 1
    assert memoryd("forget", "--session", "s1", "--json").code == 0
    assert memoryd("recall", "special", "--json").json["hits"] == []
    assert memoryd("forget", "--all", "--yes").code == 0
    assert other


def test_forget_all_is_not_done_unasked(memoryd: Run) -> None:
    memoryd("store", "city", "Oslo")
    for more in ((), ("--json",), ("--session", "s1")):
        done = memoryd("forget", "--all", *more)
        assert done.code == 64
        assert "Nobody is there to be asked; say --yes." in done.err
    assert memoryd("get", "city").out == "Oslo\n"
    assert memoryd("forget", "--all", "--yes", "--json").json["erased"] == 1


def test_status_and_dead(memoryd: Run) -> None:
    record(memoryd, "one", "two")
    found = memoryd("status", "--json").json
    assert set(found) == {
        "state", "profile", "home", "directory", "log", "backends", "gate", "tasks", "notes", "stores", "stages", "queues",
        "pid", "version", "opened_at", "served_by", "daemon", "hosts", "paused",
    }  # fmt: skip
    assert (found["state"], found["log"]["head"]) == ("ok", 2)
    assert found["backends"][0]["label"] == "local (SQLite)"
    assert "local (SQLite) ok" in memoryd("status").out
    assert memoryd("dead", "--json").json == {"dead": [], "count": 0}
