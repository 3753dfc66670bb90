"""``memoryd status`` as a person and a program read it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memoryd.store import profile_directory

TURN = json.dumps({"user": "I live in Oslo", "assistant": "Noted."})


def damage(home: Path) -> None:
    memory = profile_directory(home, "default") / "memory.db"
    memory.write_bytes(b"\xa5" * memory.stat().st_size)


def test_it_says_what_is_there_where_and_how_long_things_take(memoryd: Any, private_home: Path) -> None:
    memoryd("turn", "--session", "s1", stdin=TURN)
    memoryd("checkpoint", "create", "--session", "s1", "-", stdin='{"role": "user", "content": "I live in Oslo"}\n')
    done = memoryd("status", "--json")
    found = done.json
    assert (done.code, found["state"], found["served_by"], found["profile"]) == (0, "ok", "embedded", "default")
    assert {store["name"] for store in found["stores"]} == {"log", "memory", "archive"}
    assert all(Path(store["path"]).exists() and store["bytes"] and store["last_write"] for store in found["stores"])
    assert [stage["name"] for stage in found["stages"]] == ["append", "barrier", "project", "deliver", "recall", "prefetch", "checkpoint"]
    assert set(found["queues"]) == {"sync", "read", "gate", "archive", "held", "prefetch"}
    [receipt] = found["gate"]["receipts"]
    assert {"session", "host", "trigger", "verdict", "cause", "reason", "id", "rows", "ms", "at"} <= receipt.keys()
    assert receipt["verdict"] == "archived"
    assert memoryd("gate", "status", "--json").json["receipts"] == [receipt]
    assert found["daemon"] == {"socket": found["daemon"]["socket"], "running": False, "pid": None, "version": "", "problem": ""}
    assert {host["name"]: host["capability"] for host in found["hosts"]}["mcp"] == "observe-only"
    text = memoryd("status").out
    assert str(private_home) in text
    assert "daemon none" in text
    mcp = next(line for line in text.splitlines() if line.startswith("mcp\t"))
    assert "no signal before a compaction" in mcp
    assert mcp.split("\t")[1] == "not installed"
    assert "Oslo" not in text + json.dumps(found)


def test_a_damaged_memory_is_said_at_once_with_its_remedy(memoryd: Any, private_home: Path) -> None:
    memoryd("turn", "--session", "s1", stdin=TURN)
    damage(private_home)
    done = memoryd("status", "--json")
    assert (done.code, done.json["state"], done.json["backends"][0]["last_error"]) == (1, "broken", "StoreCorrupt")
    assert any("memoryd repair" in note for note in done.json["notes"])
    found = memoryd("recall", "--json", "where do I live")
    assert [hit["text"] for hit in found.json["hits"]] == ["I live in Oslo"]
    assert (found.json["stale"], found.json["source"]) == (True, "log")
    assert "memoryd repair" in memoryd("get", "city").err


def test_degraded_has_an_exit_code_of_its_own(memoryd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memoryd("store", "k", "v")
    monkeypatch.setenv("MEMORYD_LOG_MAX_BYTES", "1")
    monkeypatch.setenv("MEMORYD_GATE_QUOTA_BYTES", "1")
    memoryd("checkpoint", "create", "--session", "s1", "-", stdin='{"role": "user", "content": "I live in Oslo"}\n')
    done = memoryd("status", "--json")
    assert (done.code, done.json["state"]) == (3, "degraded")


def test_every_profile_and_a_broken_one_hides_no_other(memoryd: Any, private_home: Path) -> None:
    for name in ("default", "work"):
        memoryd("store", "k", "v", "--profile", name)
    damage(private_home)
    (profile_directory(private_home, "work") / "profile.key").unlink()
    memoryd("store", "k", "v", "--profile", "third")
    done = memoryd("status", "--all-profiles", "--json")
    assert (done.code, done.json["state"]) == (1, "broken")
    assert {one["profile"]: one["state"] for one in done.json["profiles"]} == {"default": "broken", "third": "ok", "work": "broken"}
    assert "profile.key" in next(one for one in done.json["profiles"] if one["profile"] == "work")["problem"]
    text = memoryd("status", "--all-profiles").out
    assert "ok  profile third" in text
    assert "broken  profile work" in text


def test_watching_looks_again_until_it_is_interrupted(memoryd: Any) -> None:
    memoryd("store", "k", "v")
    command = [sys.executable, "-m", "memoryd", "status", "--watch", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watch:
        assert watch.stdout is not None
        assert [json.loads(watch.stdout.readline())["state"] for _ in range(2)] == ["ok", "ok"]
        watch.send_signal(signal.SIGINT)
        _, error = watch.communicate(timeout=60)
        assert (watch.returncode, error) == (130, b"")
