"""The conversations that a Hermes home has kept: what was said, once, in order, under whose it is."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoryd.core import Config, Turn
from memoryd.errors import ConfigError, InvalidInput
from memoryd.hosts import find_source, import_history
from memoryd.hosts._import import TakenIn
from memoryd_hermes import MemorydProvider
from tests.adapters.hermes.hosts.world import FILLER, World

START = 1_770_000_000.0  # long ago: no answer is still to come
OLD = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, session_key TEXT, chat_id TEXT, chat_type TEXT, thread_id TEXT,
    model_config TEXT, system_prompt TEXT, parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, cwd TEXT,
    profile_name TEXT, archived INTEGER NOT NULL DEFAULT 0);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content TEXT,
    tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, reasoning TEXT, observed INTEGER DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT);
"""
NEW = """
ALTER TABLE messages ADD COLUMN _compressed_summary INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN display_kind TEXT;
ALTER TABLE messages ADD COLUMN display_metadata TEXT;
ALTER TABLE messages ADD COLUMN message_uid TEXT;
ALTER TABLE messages ADD COLUMN from_a_later_version BLOB;
"""
SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n## Goal\nAda asked things"
ECHO = "<memory-context>\n[System note: recalled]\nAda lives in Turin\n</memory-context>\n\n"
Said = list[tuple[str, str]]


class Host:
    """A ``state.db`` that is written as the hosts write it."""

    def __init__(self, home: Path, *, new: bool = False) -> None:
        home.mkdir(exist_ok=True)
        self.path = home / "state.db"
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.executescript(OLD + (NEW if new else ""))
        self.now = START

    def session(self, name: str, source: str = "cli", **more: Any) -> None:
        self.now += 10
        self.insert("sessions", id=name, source=source, started_at=self.now, **more)

    def say(self, session: str, role: str, content: object, **more: Any) -> float:
        self.now += 1
        text = content if isinstance(content, str) or content is None else "\0json:" + json.dumps(content)
        self.insert("messages", **{"session_id": session, "role": role, "content": text, "timestamp": self.now, **more})
        return self.now

    def turns(self, session: str, *numbers: int) -> None:
        for number in numbers:
            self.say(session, "user", f"question {number}")
            self.say(session, "assistant", f"answer {number}")

    def archive(self, session: str) -> None:
        self.connection.execute("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", (session,))

    def insert(self, table: str, **row: Any) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self.connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


def events(path: Path) -> list[Turn]:
    return [event for event in find_source("hermes").events(path) if isinstance(event, Turn)]


def said(path: Path) -> Said:
    return [(event.user, event.assistant) for event in events(path)]


def numbered(*numbers: int) -> Said:
    return [(f"question {number}", f"answer {number}") for number in numbers]


def take(room: Path, path: Path, **more: Any) -> TakenIn:
    return import_history(room, "default", Config(), find_source("hermes"), [path], user="default", **more)


def exported(*words: str) -> list[dict[str, Any]]:
    """The turns that a home of memoryd has."""
    command = [sys.executable, "-m", "memoryd", *words, "export", "--all-users"]
    lines = map(json.loads, subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
    return [line for line in lines if line.get("kind") == "turn"]


@pytest.fixture(params=[False, True], ids=["old", "new"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    return Host(tmp_path / "hermes", new=request.param)


def test_what_was_said_with_its_times_and_places(host: Host) -> None:
    host.session("s1", cwd="/w/foo", profile_name="work")
    at = host.say("s1", "user", ECHO + "where is the log?")
    host.say("s1", "assistant", "I look.", tool_calls='[{"id": "c1"}]')
    host.say("s1", "tool", '{"output": "no speech"}', tool_call_id="c1")
    host.say("s1", "assistant", "In /var/log.")
    host.say("s1", "system", "be nice")
    host.say("s1", "user", [{"type": "text", "text": "and this?"}, {"type": "image_url", "image_url": {"url": "data:x"}}])
    host.say("s1", "assistant", None)
    host.say("s1", "user", "an aside of somebody else", observed=1)
    host.session("s2")
    host.say("s2", "user", "cut off")
    host.connection.execute("UPDATE messages SET content = CAST(x'66ff6f' AS TEXT) WHERE content = 'cut off'")
    first, second, third = events(host.path.parent)
    assert (first.user, first.assistant, first.at) == ("where is the log?", "In /var/log.", int(at * 1e6))
    assert (first.scope.session, first.scope.workspace, first.scope.platform, first.scope.agent) == ("s1", "/w/foo", "cli", "work")
    assert first.scope.user is None and first.turn_id is None
    assert (second.user, second.assistant) == ("and this?", "")
    assert (third.user, third.scope.session) == ("f\ufffdo", "s2")
    assert list(map(repr, events(host.path))) == list(map(repr, [first, second, third]))


def test_a_compaction_in_place_tells_nothing_twice(host: Host) -> None:
    """Copies without any sign of it: the first rows before the summary, the last ones behind it, three times over."""
    host.session("s1")
    host.turns("s1", 1, 2, 3, 4)
    for done in (4, 5, 6):
        host.archive("s1")
        host.turns("s1", 1)
        host.say("s1", "user", f"{SUMMARY} {done}")
        host.turns("s1", done)
        host.say("s1", "user", "[Your active task list was preserved across context compression]\n- [ ] look")
        host.turns("s1", done + 1)
    assert said(host.path) == numbered(1, 2, 3, 4, 5, 6, 7)
    assert [event.at for event in events(host.path)] == sorted(event.at for event in events(host.path))


def test_words_that_a_summary_was_joined_to(host: Host) -> None:
    host.session("s1")
    host.turns("s1", 1, 2, 3)
    host.archive("s1")
    joined = f"[PRIOR CONTEXT — for reference only; not a new message]\n{{}}\n\n[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n\n{SUMMARY}"
    host.say("s1", "user", joined.format("question 3"))
    host.say("s1", "assistant", "answer 3")
    host.turns("s1", 4)
    host.archive("s1")
    host.say("s1", "user", joined.format("question 5"))  # it was in no row before
    host.say("s1", "assistant", "answer 5")
    assert said(host.path) == numbered(1, 2, 3, 4, 5)


def test_the_same_words_said_again_are_said_again(host: Host) -> None:
    host.session("s1")
    host.turns("s1", 1, 1, 2)
    host.archive("s1")
    host.say("s1", "user", SUMMARY)
    host.turns("s1", 2, 1, 1)
    assert said(host.path) == numbered(1, 1, 2, 1, 1)
    assert len({event.event_id for event in events(host.path)}) == 5


def test_copies_that_are_known_by_their_id_or_time(tmp_path: Path) -> None:
    """A newer host hides the originals of the last rows, as it does what was taken back."""
    host = Host(tmp_path / "hermes", new=True)
    host.session("s1")
    rows = [(role, f"{word} {number}") for number in (1, 2, 3) for role, word in (("user", "question"), ("assistant", "answer"))]
    times = [host.say("s1", role, text, message_uid=f"u{place}") for place, (role, text) in enumerate(rows)]
    host.connection.execute("UPDATE messages SET active = 0, compacted = (id < 5)")
    host.say("s1", "user", "question 1", message_uid="u0")
    host.say("s1", "assistant", "answer 1", timestamp=times[1])
    host.say("s1", "user", "what nobody said, and no opening says so", _compressed_summary=1, display_kind="hidden")
    for place in (4, 5):
        host.say("s1", *rows[place], message_uid=f"u{place}", timestamp=times[place])
    host.turns("s1", 4)
    host.say("s1", "user", "taken back", active=0)
    host.say("s1", "assistant", "Gone.", active=0)
    assert said(host.path) == numbered(1, 2, 3, 4)
    assert [event.at for event in events(host.path)][:3] == [int(times[place] * 1e6) for place in (0, 2, 4)]


def test_a_session_that_goes_on_as_another(host: Host) -> None:
    """Split by a compaction, a branch of it, and one that only began after it."""
    host.session("s1", end_reason="compression", user_id="7", session_key="k:dm:7")
    host.turns("s1", 1, 2, 3)
    host.session("s2", parent_session_id="s1")
    host.turns("s2", 1)
    host.say("s2", "user", SUMMARY)
    host.turns("s2", 3, 4)
    host.session("s3", parent_session_id="s2", model_config='{"_branched_from": "s2"}')
    host.turns("s3", 1, 3, 4, 5)
    host.session("s4", parent_session_id="s3", model_config='{"_reset_from": "s3"}')
    host.turns("s4", 1)
    found = [(event.scope.session, event.user) for event in events(host.path)]
    assert found == [
        ("s1", "question 1"), ("s1", "question 2"), ("s1", "question 3"), ("s2", "question 4"), ("s3", "question 5"), ("s4", "question 1"),
    ]  # fmt: skip
    assert {event.scope.user for event in events(host.path)} == {"cli:7"}


def test_what_the_host_itself_says_is_no_speech(tmp_path: Path) -> None:
    host = Host(tmp_path / "hermes", new=True)
    host.session("s1")
    host.turns("s1", 1)
    host.say("s1", "user", "a subagent has ended", display_kind="async_delegation_complete")
    host.say("s1", "assistant", "It found the bug.")
    host.say("s1", "user", "[System: The active model for this chat has changed to x]")
    host.say("s1", "user", "now fix it")
    host.say("s1", "user", "[OUT-OF-BAND USER MESSAGE — from the user]\nwith a test\n[/OUT-OF-BAND USER MESSAGE]", display_kind="steer")
    host.say("s1", "assistant", "Fixed.")
    host.say("s1", "assistant", "the turn failed", display_kind="failed_turn")
    host.say("s1", "user", "for the model", display_metadata='{"model_only":true}')
    assert said(host.path) == [*numbered(1), ("", "It found the bug."), ("now fix it", ""), ("with a test", "Fixed.")]


def test_whose_it_is(host: Host) -> None:
    host.session("mine")
    host.session("ada", "telegram", user_id="1", session_key="a:telegram:group:5:1", chat_id="5", chat_type="group")
    host.session("all", "telegram", user_id="1", session_key="a:telegram:group:5", chat_id="5", chat_type="group")
    host.session("job", "cron")
    host.session("part", "telegram", parent_session_id="ada", model_config='{"_delegate_from": "ada"}')
    host.session("help", "subagent", parent_session_id="mine")
    for name in ("mine", "ada", "all", "job", "part", "help"):
        host.turns(name, 1)
    whose = {event.scope.session: (event.scope.user, event.scope.agent) for event in events(host.path)}
    assert whose == {
        "mine": (None, None), "ada": ("telegram:1", None), "job": ("/cron", "cron"), "part": ("telegram:1/subagent", "subagent"),
        "help": ("/subagent", "subagent"),
    }  # fmt: skip
    settings = host.path.parent / "memoryd/config.json"
    settings.parent.mkdir()
    settings.write_text('{"user": "eve", "automation": "off"}')
    assert {event.scope.user for event in events(host.path)} == {"eve", "telegram:1"}
    settings.write_text('{"automation": "same"}')
    assert {event.scope.user for event in events(host.path)} == {None, "telegram:1"}
    settings.write_text("{")
    with pytest.raises(ConfigError, match="config.json"):
        events(host.path)


def test_an_answer_that_may_still_come_is_waited_for(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.session("s1")
    host.turns("s1", 1)
    host.say("s1", "user", "question 2")
    monkeypatch.setattr("memoryd_hermes._history.time.time", lambda: host.now + 60)
    assert said(host.path) == numbered(1)
    host.connection.execute("UPDATE sessions SET ended_at = 1")
    assert said(host.path) == [*numbered(1), ("question 2", "")]


def test_the_command_takes_in_each_turn_once(host: Host) -> None:
    """While the host holds its database and writes on."""
    host.connection.execute("PRAGMA journal_mode = WAL")
    host.session("s1", cwd="/w/foo")
    host.turns("s1", 1, 2)
    host.session("job", "cron")
    host.turns("job", 3)

    def memoryd(*words: str) -> str:
        command = [sys.executable, "-m", "memoryd", "import", "hermes", str(host.path.parent), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    host.connection.execute("BEGIN IMMEDIATE")
    assert "would import 3 of 3" in memoryd("--dry-run", "--user", "ada")
    host.connection.execute("COMMIT")
    assert "imported 3 of 3" in memoryd("--user", "ada")
    host.turns("s1", 4)
    host.archive("s1")
    host.say("s1", "user", SUMMARY)
    host.turns("s1", 4, 5)
    assert "imported 2 of 5 events; 3 are here already" in memoryd("--user", "ada")
    found = [(line["scope"]["user"], line["user"]) for line in exported()]
    assert found == [("ada", "question 1"), ("ada", "question 2"), ("ada/cron", "question 3"), ("ada", "question 4"), ("ada", "question 5")]



# -- with the provider ---------------------------------------------------------------------------------------------------------


def provided(home: Path, session: str, told: Sequence[tuple[str, str]], transcript: Sequence[dict[str, Any]] = ()) -> None:
    """The provider of a host in that session, which is told some turns and, at the end, its transcript."""
    provider = MemorydProvider()
    provider.initialize(session, hermes_home=str(home), platform="cli", agent_context="primary", cwd="/w")
    for user, assistant in told:
        provider.sync_turn(user, assistant, session_id=session)
    provider.on_session_end(list(transcript))
    provider.shutdown()


def test_what_the_provider_recorded_is_not_taken_in_again(host: Host) -> None:
    home, store = host.path.parent, host.path.parent / "memoryd-store"
    host.session("s1")
    host.turns("s1", 1, 2, 2, 3)
    provided(home, "s1", numbered(2, 2, 3))
    assert take(store, home, dry_run=True) == TakenIn(4, 1)
    assert take(store, home) == TakenIn(4, 1)
    assert take(store, home) == TakenIn(4, 0)


def test_what_was_imported_is_not_recorded_again(host: Host) -> None:
    """Installed, imported, and only then the old session is resumed."""
    home, store = host.path.parent, host.path.parent / "memoryd-store"
    host.session("s1")
    host.turns("s1", 1, 2)
    assert take(store, home) == TakenIn(2, 2)
    rows = [{"role": role, "content": text} for pair in numbered(1, 2, 3) for role, text in zip(("user", "assistant"), pair, strict=True)]
    provided(home, "s1", numbered(3), rows)
    assert sorted(line["user"] for line in exported("--home", str(store))) == ["question 1", "question 2", "question 3"]


# -- what is no such file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0 and then nothing", b"plain text\n" * 100])
def test_what_is_no_database_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="state.db"):
        events(tmp_path)
    assert path.read_bytes() == content and list(tmp_path.iterdir()) == [path]


def test_a_damaged_or_a_foreign_one_and_none_at_all(host: Host, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no state.db"):
        events(tmp_path)
    with closing(sqlite3.connect(tmp_path / "state.db")) as other:
        other.execute("CREATE TABLE messages (body TEXT)")
    with pytest.raises(InvalidInput, match="is no state.db of Hermes"):
        events(tmp_path)
    host.session("s1")
    host.turns("s1", *range(400))
    host.connection.close()
    whole = host.path.read_bytes()
    host.path.write_bytes(whole[: len(whole) // 2] + b"\0" * (len(whole) // 2))
    with pytest.raises(InvalidInput, match="cannot be read"):
        events(host.path)
    done = subprocess.run([sys.executable, "-m", "memoryd", "import", "hermes", str(host.path)], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr


def test_values_of_any_kind_are_taken_or_passed_over(host: Host, tmp_path: Path) -> None:
    host.insert("sessions", id=b"\xff\0", source=b"\1", started_at="soon", cwd=b"zz", model_config=b"\xff", user_id=b"1", profile_name=7)
    host.insert("sessions", id="", source="", started_at=-4, model_config="[1]", profile_name="p" * 900)
    host.insert("sessions", id="own", source="s" * 900, started_at=5, parent_session_id="own", cwd="/w/" + "x" * 2000)
    for session in (b"\xff\0", "", "own"):
        for role, content, at in (
            ("user", 5, "x"), ("user", b"\xff", 2), (b"user", "x", 3), ("user", "\0json:{", 4), ("user", "\0json:5", 4),
            ("user", '\0json:["a\\ud800b"]', 1e300), ("assistant", "ok\0", float("inf")), ("assistant", "no time", -3),
        ):  # fmt: skip
            host.insert("messages", session_id=session, role=role, content=content, timestamp=at, tool_calls=b"\xff")
    found = {(event.user, event.assistant) for event in events(host.path)}
    assert found == {("5", ""), ("a\ud800b", "no time")}
    assert take(tmp_path / "home", host.path) == TakenIn(4, 4) and take(tmp_path / "home", host.path) == TakenIn(4, 0)


# -- a file that a real host wrote -----------------------------------------------------------------------------------------------


@pytest.mark.hosts
@pytest.mark.parametrize("compression", ["in_place: true", "in_place: false"])
@pytest.mark.parametrize("host", ["host19", "host22"])
def test_the_database_of_a_real_host(make_world: Callable[..., World], host: str, compression: str) -> None:
    """Twice compacted and gone on: everything once, in another home; and nothing new where the provider was told it."""
    world = make_world(host, compression=compression)
    turns = [f"fact {number}: {FILLER}" for number in range(12)]
    told = world.drive(
        ("agent", "s1"), *(("turn", text) for text in turns[:8]), ("compress", None), *(("turn", text) for text in turns[8:11]),
        ("compress", None), ("turn", turns[11]), ("end", None),
    )  # fmt: skip
    assert not [line for line in told if "error" in line], told
    recorded = world.turns()
    assert [text for _, text in recorded] == turns
    sessions = len({session for session, _ in recorded})  # a host that is slow may find nothing to compact the second time
    assert sessions == 1 if compression == "in_place: true" else sessions in (2, 3)
    other = world.root / "other"
    world.memoryd("--home", str(other), "import", "hermes", str(world.home))
    assert world.turns(other) == recorded
    assert "imported 0 of 12" in world.memoryd("--home", str(world.store), "import", "hermes", str(world.home / "state.db"))
