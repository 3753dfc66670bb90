"""The commands of docs/howto/daemon.md do what the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/daemon.md").read_text("utf-8")


def block(word: str) -> str:
    [found] = [text for text in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE) if word in text]
    return str(found)


def shell(script: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    places = {"PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}", **environ}
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, **places}, check=False, timeout=120)


def test_by_hand(tmp_path: Path) -> None:
    done = shell(block("memoryd serve"), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"state": "journaled"' in done.stdout and "I live in Oslo" in done.stdout
    assert "daemon" in done.stdout, "status says who answered"


def test_with_systemd(tmp_path: Path) -> None:
    """systemctl is a program that writes down how it was called."""
    (tmp_path / "bin").mkdir()
    stub = tmp_path / "bin/systemctl"
    stub.write_text('#!/bin/sh\necho "$@" >> "$HOME/calls"\n')
    stub.chmod(0o755)
    shutil.copytree(ROOT / "config", tmp_path / "config")
    done = shell(block("systemctl"), tmp_path, HOME=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    units = tmp_path / ".config/systemd/user"
    starts = re.findall(r"^ExecStart=(\S+) serve$", (units / "memoryd.service").read_text(), re.MULTILINE)
    assert len(starts) == 1 and Path(starts[0]).is_absolute() and os.access(starts[0], os.X_OK)
    assert (units / "memoryd.socket").exists()
    assert (tmp_path / "calls").read_text() == "--user daemon-reload\n--user enable --now memoryd.socket\n"


def test_every_bad_day_in_the_table_has_a_test() -> None:
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    for name in (
        "garbage_costs_its_own_connection", "a_wrong_call_costs_nothing", "who_begins_and_does_not_go_on", "a_client_that_never_reads",
        "the_longest_silent_one_gives_way", "more_calls_at_once", "a_client_that_stands_still", "a_fork_of_a_client",
        "killed_in_the_middle_of_replies", "a_removed_socket_comes_back", "another_program_took", "a_pid_in_the_lock_file",
        "what_is_no_socket_is_left_alone", "a_second_daemon", "a_home_that_is_removed", "a_full_disk", "a_clock_that_jumps",
        "one_broken_profile", "a_bug_in_one_runtime",
    ):  # fmt: skip
        assert f"def test_{name}" in tests or f"_{name}" in tests, name
