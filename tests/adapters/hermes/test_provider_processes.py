"""An agent whose process ends as processes do: what was answered is kept, and the next process recalls it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoryd.blocking import Memory
from memoryd.core import scope
from tests.adapters.hermes.manager import agent, said, store_of, turns

ROOT = Path(__file__).parents[3]
ALL = [(f"turn {number} of the harbour", f"answer {number}") for number in range(3)]


@contextmanager
def child(home: Path, mode: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(Path(__file__).with_name("child_agent.py")), str(home), mode]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=["kill -9", "SIGTERM", "SIGINT"])
def test_what_was_answered_survives_a_signal(tmp_path: Path, how: signal.Signals) -> None:
    with child(tmp_path, "wait") as process:
        assert line(process) == "answered"
        process.send_signal(how)
        process.wait(30)
    assert turns(tmp_path) == ALL
    with agent(tmp_path, "s2") as manager:
        assert "turn 1" in manager.recalled("what was turn 1 about?")


@pytest.mark.parametrize("mode", ["exit", "old", "kill-self"])
def test_what_was_answered_survives_an_end_without_shutdown(tmp_path: Path, mode: str) -> None:
    with child(tmp_path, mode) as process:
        assert line(process) == "answered"
        if mode != "old":
            process.wait(30)
    assert turns(tmp_path) == ALL


def test_a_checkpoint_survives_a_kill_the_moment_it_returns(tmp_path: Path) -> None:
    with child(tmp_path, "checkpoint") as process:
        assert line(process) == "answered"
        told = line(process)
        process.kill()
        process.wait(30)
    assert "6 messages archived" in told
    with Memory(store_of(tmp_path)) as memory, scope(user="default"):
        restored = memory.restore(told.split()[2].rstrip(":"))
        assert memory.verify().ok
    assert len(restored.rows) == 6


def test_two_agents_of_two_processes_on_one_session_double_nothing(tmp_path: Path) -> None:
    with child(tmp_path, "wait") as process:
        assert line(process) == "answered"
        with agent(tmp_path) as manager:
            manager.on_session_end(said(*ALL, ("from the other process", "ok")))
    assert turns(tmp_path) == [*ALL, ("from the other process", "ok")]


def test_a_turn_that_another_process_filled_in_first_is_that_one(tmp_path: Path) -> None:
    """A host that is replaced may still be telling its last turn while the new one reads the transcript."""
    with agent(tmp_path) as manager:
        manager.sync_all("one", "1")
        assert manager.flush_pending()
        with child(tmp_path, "fill") as process:
            assert process.wait(60) == 0
        manager.sync_all("two", "2")
        manager.sync_all("two", "2 again")
    assert turns(tmp_path) == [("one", "1"), ("two", "2"), ("two", "2 again")]
