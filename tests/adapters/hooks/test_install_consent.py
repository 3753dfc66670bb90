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
        self.name = "s-1"
        settings = parse_json((Path(os.environ["HOME"]) / ".claude/settings.json").read_text())
        self._commands = {event: groups[0]["hooks"][0]["command"] for event, groups in settings["hooks"].items()}

    def say(self, user: str, assistant: str) -> None:
        self.tell("UserPromptSubmit", prompt=user)
        self.write("user", user)
        self.write("assistant", assistant)
        self.tell("Stop", last_assistant_message=assistant)

    def write(self, role: str, text: str) -> None:
        """One more record in the transcript, of now."""
        number = self.transcript.read_text().count("\n") if self.transcript.exists() else 0
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        said: dict[str, Any] = {"role": role, "content": text}
        if role == "assistant":
            said |= {"id": f"m-{number}", "content": [{"type": "text", "text": text}]}
        line = {"type": role, "uuid": f"{self.name}-{number}", "message": said, "isSidechain": False, "sessionId": self.name}
        with self.transcript.open("a") as file:
            file.write(json.dumps({**line, "cwd": str(self.cwd), "timestamp": at}) + "\n")

    def begin(self, user: str, assistant: str) -> None:
        """A first turn, and what the hook leaves to a process of its own done."""
        self.tell("SessionStart", source="resume")
        time.sleep(0.8)  # as a person would take
        self.say(user, assistant)
        time.sleep(0.8)

    def compact(self, summary: str = f"about the {WORDS}") -> None:
        self.tell("PreCompact", trigger="auto", custom_instructions=None)
        self.tell("PostCompact", trigger="auto", compact_summary=summary)
        self.tell("SessionEnd", reason="other")

    def tell(self, event: str, **fields: Any) -> None:
        payload = {"session_id": self.name, "transcript_path": str(self.transcript), "cwd": str(self.cwd), "hook_event_name": event, **fields}
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
    return [str(path.relative_to(room)) for path in paths if path.suffix != ".jsonl" and words.encode() in path.read_bytes()]


def paused(room: Path, memoryd: Memoryd) -> None:
    memoryd("pause")


def excluded(room: Path, memoryd: Memoryd) -> None:
    (room / "home").mkdir(exist_ok=True)
    (room / "home/memoryd.toml").write_text('[capture]\nexclude = ["project"]\n')


def ignored(room: Path, memoryd: Memoryd) -> None:
    (room / "project").mkdir(exist_ok=True)
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


@pytest.mark.parametrize(("serving", "is_told"), [(daemon, False), (daemon, True), (lambda room: nullcontext(), True)])
def test_what_a_session_said_while_it_was_private_stays_out_when_it_goes_on_in_the_open(
    installed: Path, memoryd: Memoryd, serving: Callable[[Path], Any], is_told: bool
) -> None:
    """Its transcript has it.  Another session begins meanwhile, which reads what others have said."""
    with serving(installed):
        Session(installed).begin("Where do wombats live?", "In burrows.")
        private = Session(installed, MEMORYD_PRIVATE="1")
        private.begin(f"Where does the {WORDS} live?", "On Rottnest Island.")
        private.write("user", f"And what does a {WORDS} eat?")
        other = Session(installed)
        other.name, other.transcript = "s-2", installed / "other.jsonl"
        other.begin("Where do bats live?", "In caves.")
        _settle(memoryd)
        private.write("assistant", "Grass.")
        if is_told:
            private.tell("Stop", last_assistant_message="Grass.")
            time.sleep(0.8)
        again = Session(installed)
        again.begin("Where do koalas live?", "In trees.")
        again.compact(summary="")
        _settle(memoryd)
        kept = [row for line in memoryd("export").splitlines() if (row := json.loads(line)).get("kind") == "turn"]
    assert sorted(turn["assistant"] for turn in kept) == ["In burrows.", "In caves.", "In trees."]
    assert files_with(installed, "koalas") != []
    for words in (WORDS, "Rottnest", "Grass"):
        assert files_with(installed, words) == []


def test_what_was_said_in_a_folder_while_it_was_kept_out_stays_out(installed: Path, memoryd: Memoryd) -> None:
    with Daemon(installed):
        session = Session(installed)
        session.begin("Where do wombats live?", "In burrows.")
        ignored(installed, memoryd)
        session.say(f"Where does the {WORDS} live?", "On Rottnest Island.")
        (installed / "project/.memoryd-ignore").unlink()
        session.say("Where do koalas live?", "In trees.")
        session.compact(summary="")
        _settle(memoryd)
    assert files_with(installed, "koalas") != []
    assert files_with(installed, WORDS) == []


def test_a_transcript_that_is_all_private_may_be_compacted_in_the_open(installed: Path, memoryd: Memoryd) -> None:
    with Daemon(installed):
        Session(installed, MEMORYD_PRIVATE="1").begin(f"Where does the {WORDS} live?", "On Rottnest Island.")
        again = Session(installed)
        again.tell("SessionStart", source="resume")
        again.compact(summary="")
    assert files_with(installed, "Rottnest") == []


def test_what_waits_in_the_spool_is_forgotten_with_the_rest(installed: Path, memoryd: Memoryd) -> None:
    with Daemon(installed):
        Session(installed, MEMORYD_SOCKET=str(installed / "nobody")).say(f"Where does the {WORDS} live?", "On Rottnest Island.")
        assert all(name.startswith("home/hooks.") for name in files_with(installed, WORDS))  # the daemon may take it in at this moment
        memoryd("forget", "--session", "s-1", "--yes")
    assert files_with(installed, WORDS) == []
    assert files_with(installed, "Rottnest") == []


@pytest.mark.parametrize("variable", ["MEMORYD_CAPTURE_PRIVATE=true", "MEMORYD_CAPTURE_EXCLUDE=project"])
def test_settings_in_the_environment_of_the_agent_count_in_a_daemon_that_has_others(
    installed: Path, memoryd: Memoryd, variable: str
) -> None:
    name, _, value = variable.partition("=")
    with Daemon(installed):
        session = Session(installed, **{name: value})
        session.say(f"Where does the {WORDS} live?", "On Rottnest Island.")
        session.compact()
        _settle(memoryd)
    assert files_with(installed, WORDS) == []
    assert files_with(installed, "Rottnest") == []


def test_a_folder_that_is_excluded_while_a_daemon_has_the_profile_open_is_kept_out_from_then_on(installed: Path, memoryd: Memoryd) -> None:
    with Daemon(installed):
        Session(installed).say("Where do wombats live?", "In burrows.")
        excluded(installed, memoryd)
        session = Session(installed)
        session.say(f"Where does the {WORDS} live?", "On Rottnest Island.")
        session.compact()
        _settle(memoryd)
    assert files_with(installed, WORDS) == []


def test_a_prompt_of_a_session_that_the_host_keeps_no_transcript_of_is_not_spooled(installed: Path) -> None:
    without = {"session_id": "s-1", "cwd": str(installed), "transcript_path": None}
    for session, given in ((Session(installed, CLAUDE_CODE_SKIP_PROMPT_HISTORY="1"), {}), (Session(installed), without)):
        session.tell("UserPromptSubmit", prompt=f"Where does the {WORDS} live?", **given)
        session.tell("Stop", last_assistant_message="On Rottnest Island.", **given)
    assert files_with(installed, WORDS) == []
    assert files_with(installed, "Rottnest") == []


def test_an_answer_that_was_written_in_a_pause_stays_out_of_a_turn_that_began_before_it(installed: Path, memoryd: Memoryd) -> None:
    with Daemon(installed):
        session = Session(installed)
        session.write("user", "Where do wombats live?")
        session.write("assistant", "In burrows.")
        time.sleep(0.01)
        memoryd("pause")
        session.write("assistant", f"The {WORDS} lives elsewhere.")
        time.sleep(0.01)
        memoryd("resume")
        session.write("assistant", "Bats live in caves.")
        session.tell("Stop", last_assistant_message="Bats live in caves.")
        session.compact()
        _settle(memoryd)
        (turn,) = [row for line in memoryd("export").splitlines() if (row := json.loads(line)).get("kind") == "turn"]
    assert turn["assistant"] == "In burrows.\n\nBats live in caves."
    assert files_with(installed, f"The {WORDS}") == []


def test_a_session_that_was_all_in_a_pause_may_compact_after_it(installed: Path, memoryd: Memoryd) -> None:
    session = Session(installed)
    memoryd("pause")
    session.begin(f"Where does the {WORDS} live?", "On Rottnest Island.")
    memoryd("resume")
    session.tell("PreCompact", trigger="auto", custom_instructions=None)
    assert files_with(installed, "Rottnest") == []


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

