"""``memoryd checkpoint`` and ``memoryd gate``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ROWS = [
    {"role": "user", "content": "Book the 9:40 train."},
    {"role": "assistant", "content": "Booked: 9:40, seat 61.", "tool_calls": [{"id": "1"}]},
    {"role": "user", "content": [{"type": "text", "text": "Łódź 東京 \ud800"}]},
]


def jsonl(rows: list[object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_create_and_restore(memoryd: Run, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(jsonl(ROWS))
    created = memoryd("checkpoint", "create", str(file), "--session", "s1", "--json")
    assert created.code == 0
    receipt = created.json
    assert (receipt["verdict"], receipt["rows"], receipt["session"]) == ("archived", 3, "s1")
    assert memoryd("checkpoint", "restore", receipt["id"], "--json").json == {"messages": ROWS, "erased": 0}
    assert memoryd("checkpoint", "restore", receipt["id"]).lines == ROWS
    assert memoryd("checkpoint", "restore", receipt["id"], "--full").stdout == file.read_bytes()
    assert memoryd("checkpoint", "verify", "--json").json["ok"] is True
    assert memoryd("checkpoint", "verify", receipt["id"]).out.startswith("ok")


@pytest.mark.parametrize("text", [json.dumps(ROWS), jsonl(ROWS), json.dumps(ROWS, indent=2), json.dumps({"messages": ROWS})])
def test_the_same_messages_in_any_shape_are_the_same_checkpoint(memoryd: Run, text: str) -> None:
    first = memoryd("checkpoint", "create", "--json", stdin=jsonl(ROWS)).json
    again = memoryd("checkpoint", "create", "-", "--json", stdin=text).json
    assert again["id"] == first["id"]
    assert again["new_rows"] == 0


def test_list_and_show(memoryd: Run) -> None:
    first = memoryd("checkpoint", "create", "--session", "s1", "--host", "h", "--trigger", "auto", "--json", stdin=jsonl(ROWS[:1])).json
    second = memoryd("checkpoint", "create", "--session", "s2", "--json", stdin=jsonl(ROWS)).json
    found = memoryd("checkpoint", "list", "--json").json
    assert {c["id"] for c in found["checkpoints"]} == {first["id"], second["id"]}
    assert [c["id"] for c in memoryd("checkpoint", "list", "--session", "s1", "--json").json["checkpoints"]] == [first["id"]]
    shown = memoryd("checkpoint", "show", first["id"], "--json").json
    assert [(a["host"], a["trigger"]) for a in shown["attempts"]] == [("h", "auto")]
    assert first["id"] in memoryd("checkpoint", "list").out
    assert memoryd("checkpoint", "show", "0" * 32).code == 1


def test_of_another_user_there_is_nothing(memoryd: Run) -> None:
    receipt = memoryd("checkpoint", "create", "--json", stdin=jsonl(ROWS)).json
    assert memoryd("checkpoint", "list", "--user", "eve", "--json").json["count"] == 0
    for command in ("show", "restore", "verify"):
        done = memoryd("checkpoint", command, receipt["id"], "--user", "eve")
        assert done.code == 1, command
        assert not done.out


def test_an_unknown_checkpoint(memoryd: Run) -> None:
    for identity in ("0" * 32, "nonsense", "ff"):
        done = memoryd("checkpoint", "restore", identity, "--json")
        assert done.code == 1
        assert done.json["error"]["type"] == "CheckpointNotFound"


@pytest.mark.parametrize("what", ["missing", "directory", "unreadable home"])
def test_every_failure_to_archive_exits_2(memoryd: Run, tmp_path: Path, private_home: Path, what: str) -> None:
    file = tmp_path / "t.jsonl"
    match what:
        case "missing":
            pass
        case "directory":
            file.mkdir()
        case _:
            file.write_text(jsonl(ROWS))
            private_home.write_text("this is a file")
    done = memoryd("checkpoint", "create", str(file), "--json")
    assert done.code == 2
    assert done.err.startswith("BLOCKED_MISSING_PREREQUISITE: ")
    error = done.json["error"]
    assert (error["type"], error["code"]) == ("CheckpointBlocked", "BLOCKED_MISSING_PREREQUISITE")
    assert error["cause"]
    assert error["remedy"]


def test_writes_that_fail_refuse(private_home: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(jsonl([{"role": "user", "content": f"{number} {os.urandom(200).hex()}"} for number in range(500)]))
    command = f"ulimit -f 64; exec {sys.executable} -m memoryd checkpoint create {file}"
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("BLOCKED_MISSING_PREREQUISITE: ")
    assert done.stdout == ""


def test_a_release_passes_once(memoryd: Run, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.jsonl")
    assert memoryd("gate", "release", "s1", "--once", "--json").json == {"session": "s1", "once": True, "released": True}
    assert memoryd("gate", "status", "--json").json["released"] == {"s1": "once"}
    assert memoryd("checkpoint", "create", missing, "--session", "s1", "--json").json["verdict"] == "released"
    assert memoryd("checkpoint", "create", missing, "--session", "s1").code == 2
    assert "refused: s1, 1 in a row" in memoryd("gate", "status").out


def test_a_release_until_it_is_cleared(memoryd: Run, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.jsonl")
    memoryd("gate", "release", "s1")
    for _ in range(2):
        assert memoryd("checkpoint", "create", missing, "--session", "s1").code == 0
    assert memoryd("checkpoint", "create", missing, "--session", "s2").code == 2
    memoryd("gate", "release", "s1", "--clear")
    assert memoryd("checkpoint", "create", missing, "--session", "s1").code == 2


@pytest.mark.parametrize("mode", ["warn", "off"])
def test_the_way_out_works_where_nothing_else_does(memoryd: Run, private_home: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    private_home.write_text("this is a file")
    monkeypatch.setenv("MEMORYD_GATE", mode)
    receipt = memoryd("checkpoint", "create", "--json", stdin=jsonl(ROWS)).json
    assert receipt["verdict"] == {"warn": "warned", "off": "off"}[mode]
    assert receipt["warning"]


def test_gate_mode_by_variable(memoryd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_GATE", "off")
    assert memoryd("gate", "status", "--json").json["mode"] == "off"
    assert memoryd("checkpoint", "create", "--json", stdin=jsonl(ROWS)).json["verdict"] == "off"


def test_many_rows(memoryd: Run) -> None:
    rows: list[object] = [{"role": "user", "content": f"message {number}"} for number in range(20_000)]
    receipt = memoryd("checkpoint", "create", "--json", stdin=jsonl(rows)).json
    assert receipt["rows"] == 20_000
    assert len(memoryd("checkpoint", "restore", receipt["id"], "--json").json["messages"]) == 20_000
