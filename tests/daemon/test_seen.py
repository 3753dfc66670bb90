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

from tests.daemon.harness import Daemon


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

