"""A daemon as ``status`` and ``doctor`` see it from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.harness import SCOPE, Daemon, frame


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with Daemon(tmp_path) as found:
        yield found


def told(daemon: Daemon, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Any:
    environ = {**os.environ, "MEMORYD_HOME": str(daemon.home), "MEMORYD_SOCKET": str(daemon.path), **(env or {})}
    command = [sys.executable, "-m", "memoryd", *arguments]
    done = subprocess.run(command, input=stdin, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


def test_status_is_the_daemons_with_the_stages_of_all_its_clients(daemon: Daemon) -> None:
    for number in range(3):
        told(daemon, "turn", "--session", "s", stdin=json.dumps({"user": f"zebra {number}", "assistant": "ok"}))
    told(daemon, "recall", "--json", "zebra")
    found = told(daemon, "status", "--json")
    assert (found["state"], found["served_by"], found["pid"]) == ("ok", "daemon", daemon.pid)
    stages = {stage["name"]: stage for stage in found["stages"]}
    assert (stages["append"]["calls"], stages["recall"]["calls"]) == (3, 1)
    assert stages["append"]["p50_ms"] > 0
    assert (found["daemon"]["running"], found["daemon"]["pid"], found["daemon"]["problem"]) == (True, daemon.pid, "")
    several = told(daemon, "status", "--all-profiles", "--json")
    assert [one["served_by"] for one in several["profiles"]] == ["daemon"]


def test_doctor_looks_through_it_and_says_where_the_two_see_different_settings(daemon: Daemon) -> None:
    told(daemon, "store", "k", "v", "--json")
    found = told(daemon, "doctor", "--json")
    assert found["state"] == "ok", [check for check in found["checks"] if check["state"] != "ok"]
    assert str(daemon.pid) in next(check["said"] for check in found["checks"] if check["name"] == "daemon")
    found = told(daemon, "doctor", "--json", env={"MEMORYD_RECALL_BUDGET_CHARS": "3000"})
    [check] = [check for check in found["checks"] if check["state"] != "ok"]
    assert (check["name"], check["state"]) == ("one-configuration", "warn")
    assert "restart the daemon" in check["remedy"]



SECRET = "heliotrope"


def nonsense() -> Iterator[bytes]:
    """What a client with a bug, or none at all, may send; each has the text in another place."""
    yield frame("recall", ask=1, query=SECRET, limit=SECRET, scope=SCOPE)
    yield frame(SECRET, ask=2)
    yield frame("store", ask=3, **{SECRET: SECRET}, scope={"user": SECRET * 200})
    yield frame("store", key="", value=SECRET, scope=SCOPE)
    yield frame("sync_turn", ask=4, user=[SECRET], assistant={SECRET: 1}, scope={SECRET: SECRET})
    yield f'{{"jsonrpc": "2.0", "method": "{SECRET}", "params": {{"{SECRET}": '.encode() + b"\n"
    yield b"\x00\xff" + SECRET.encode() + b"\n"


@pytest.mark.parametrize("to_file", [False, True])
def test_no_record_of_a_daemon_holds_a_text_whatever_clients_send(tmp_path: Path, to_file: bool) -> None:
    config = '[logging]\nlevel = "debug"\n' + ('file = "m.log"\n' if to_file else "")
    with Daemon(tmp_path, config=config) as daemon:
        with daemon.client() as client:
            client.turn(f"the word is {SECRET}")
            client.call("store", key="word", value=SECRET, scope=SCOPE)
            client.call("recall", query=SECRET, scope=SCOPE)
            client.call("checkpoint", messages=[{"role": "user", "content": SECRET}], scope=SCOPE)
        for data in nonsense():
            with daemon.client() as client:
                client.send(data)
                client.send(frame("ping", ask=9))
                while (answer := client.read()) is not None and answer.get("id") != 9:
                    pass
        daemon.check()
        daemon.stop()
        told = (daemon.home / "m.log").read_text("utf-8") if to_file else daemon.errors
        assert '"event": "runtime.opened"' in told
        assert '"event": "gate.allowed"' in told
        assert SECRET not in told + daemon.errors
        assert daemon.errors == "" or not to_file
