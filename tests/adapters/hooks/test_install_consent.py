"""Nothing of what is kept out is in any file: the installed hooks run, with and without a daemon, and every file is searched."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memoryd.hosts import apply_plan, find_host, make_place, parse_json
from tests.adapters.hooks.conftest import Memoryd
from tests.daemon.harness import Daemon

WORDS = "quokka"  # nothing else has this word


class Session:
    """Claude Code in one folder: a prompt, an answer, a compaction, the end."""

    def __init__(self, room: Path, **environ: str) -> None:
        self.room = room
        self.cwd = room / "project/src"
        self.cwd.mkdir(parents=True, exist_ok=True)
        self.transcript = room / "transcript.jsonl"
        self._environ = environ
        settings = parse_json((Path(os.environ["HOME"]) / ".claude/settings.json").read_text())
        self._commands = {event: groups[0]["hooks"][0]["command"] for event, groups in settings["hooks"].items()}

    def say(self, user: str, assistant: str) -> None:
        number = self.transcript.read_text().count("\n") if self.transcript.exists() else 0
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        common = {"isSidechain": False, "sessionId": "s-1", "cwd": str(self.cwd), "timestamp": at}
        said = {"role": "assistant", "id": f"m-{number}", "content": [{"type": "text", "text": assistant}]}
        lines = [
            {"type": "user", "uuid": f"u-{number}", "message": {"role": "user", "content": user}, **common},
            {"type": "assistant", "uuid": f"a-{number}", "message": said, **common},
        ]
        self.tell("UserPromptSubmit", prompt=user)
        with self.transcript.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        self.tell("Stop", last_assistant_message=assistant)

    def compact(self) -> None:
        self.tell("PreCompact", trigger="auto", custom_instructions=None)
        self.tell("PostCompact", trigger="auto", compact_summary=f"about the {WORDS}")
        self.tell("SessionEnd", reason="other")

    def tell(self, event: str, **fields: Any) -> None:
        payload = {"session_id": "s-1", "transcript_path": str(self.transcript), "cwd": str(self.cwd), "hook_event_name": event, **fields}
        environ = {**os.environ, **self._environ}
        done = subprocess.run(
            ["sh", "-c", self._commands[event]], input=json.dumps(payload).encode(), capture_output=True, timeout=60, check=False,
            cwd=self.cwd, env=environ,
        )  # fmt: skip
        assert done.returncode == 0, (event, done)


@pytest.fixture
def installed(room: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(room / "user"))
    place = make_place()
    apply_plan(find_host("claude-code").plan_install(place), place.memoryd_home)
    return room


def files_with(room: Path, words: str) -> list[str]:
    """Every file below ``room`` that holds ``words``, but for what is the host's own."""
    paths = [path for folder, _, names in os.walk(room) for name in names if (path := Path(folder, name)).is_file()]
    return [str(path.relative_to(room)) for path in paths if path.name != "transcript.jsonl" and words.encode() in path.read_bytes()]


def paused(room: Path, memoryd: Memoryd) -> None:
    memoryd("pause")


def excluded(room: Path, memoryd: Memoryd) -> None:
    (room / "home").mkdir(exist_ok=True)
    (room / "home/memoryd.toml").write_text('[capture]\nexclude = ["project"]\n')


def ignored(room: Path, memoryd: Memoryd) -> None:
    (room / "project").mkdir()
    (room / "project/.memoryd-ignore").touch()


@contextmanager
def daemon(room: Path) -> Iterator[None]:
    with Daemon(room):
        yield


@pytest.mark.parametrize(
    ("keep_out", "serving"),
    [(paused, nullcontext), (excluded, nullcontext), (ignored, nullcontext), (paused, daemon)],
)
def test_what_is_kept_out_is_in_no_file(
    installed: Path, memoryd: Memoryd, keep_out: Callable[[Path, Memoryd], None], serving: Callable[[Path], Any]
) -> None:
    keep_out(installed, memoryd)
    with serving(installed):
        session = Session(installed)
        session.say(f"Where does the {WORDS} live?", f"The {WORDS} lives on Rottnest Island.")
        session.compact()
        _settle(memoryd)
    assert files_with(installed, WORDS) == []
    assert files_with(installed, "Rottnest") == []


def test_a_session_that_its_environment_calls_private_is_in_no_file(installed: Path, memoryd: Memoryd) -> None:
    session = Session(installed, MEMORYD_PRIVATE="1")
    session.say(f"Where does the {WORDS} live?", "On Rottnest Island.")
    session.compact()
    _settle(memoryd)
    assert files_with(installed, WORDS) == []


def test_what_was_said_in_a_pause_stays_out_after_it(installed: Path, memoryd: Memoryd) -> None:
    """The transcript has it, and is read and archived later: without what was said in the pause."""
    with Daemon(installed):
        session = Session(installed)
        session.say("Where do wombats live?", "In burrows.")
        time.sleep(0.01)  # a host's times are whole milliseconds
        memoryd("pause")
        session.say(f"Where does the {WORDS} live?", "On Rottnest Island.")
        time.sleep(0.01)
        memoryd("resume")
        session.say("Where do bats live?", "In caves.")
        session.tell("PreCompact", trigger="auto", custom_instructions=None)
        _settle(memoryd)
    assert files_with(installed, "wombats") != []
    assert files_with(installed, "bats live") != []
    assert files_with(installed, WORDS) == []
    assert files_with(installed, "Rottnest") == []


def test_what_is_not_kept_out_is_recorded(installed: Path, memoryd: Memoryd) -> None:
    """That the search would find it."""
    with Daemon(installed):
        session = Session(installed)
        session.say(f"Where does the {WORDS} live?", "On Rottnest Island.")
        session.compact()
    assert files_with(installed, WORDS) != []


def _settle(memoryd: Memoryd) -> None:
    """Whatever waits in a spool is taken in, or not, by the next who opens the memory."""
    memoryd("status", "--json")

