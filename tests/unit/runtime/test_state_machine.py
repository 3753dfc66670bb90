"""A runtime and a simple model of it, driven at random: whatever is done, in whatever order, they agree."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import apsw
import attrs
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import memoryd
from memoryd.blocking import Memory
from memoryd.core import Accepted, Turn, decode_event
from memoryd.errors import DeadlineExceeded, StoreLocked
from memoryd.store import Connection, Options, connect, open_profile

CONFIG = {
    "deadlines": {"store": 5, "recall": 5, "retrieve": 5, "query": 5, "close": 5, "drain": 20, "flush": 20},
    "logging": {"level": "off"},
}
HASTY = {**CONFIG, "deadlines": {"store": 0.01, "recall": 0.1, "retrieve": 0.03, "close": 0.2, "drain": 0.1}}
STORES = ("log.db", "memory.db", "archive.db")
USERS = st.sampled_from(["ada", "bob"])
SESSIONS = st.sampled_from(["s1", "s2"])
KEYS = st.sampled_from(["k1", "k2"])


@attrs.define
class ModelTurn:
    id: str
    user: str
    session: str
    text: str


@attrs.define
class Change:
    """One change of a key; ``value`` None deletes it."""

    user: str
    session: str
    key: str
    value: str | None


@attrs.define
class Model:
    """What was accepted and not forgotten, in order."""

    turns: list[ModelTurn] = attrs.field(factory=list)
    changes: list[Change] = attrs.field(factory=list)

    def turns_of(self, user: str) -> list[ModelTurn]:
        return [turn for turn in self.turns if turn.user == user]

    def versions(self, user: str, key: str) -> list[str]:
        """Every value of a key, newest first."""
        return [c.value for c in reversed(self.changes) if (c.user, c.key) == (user, key) and c.value is not None]

    def current(self, user: str) -> dict[str, str]:
        """Keys and values as they are now, the latest change first."""
        last = {change.key: change for change in self.changes if change.user == user}
        ordered = sorted(last.values(), key=self.changes.index, reverse=True)
        return {change.key: change.value for change in ordered if change.value is not None}


class Runtime(RuleBasedStateMachine):
    """Every text is a word of its own, so that recall has exactly one right answer."""

    @initialize()
    def start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="memoryd-"))
        self.home = self.directory / "0"
        self.numbers = count(1)
        self.model = Model()
        self.turn_ids: dict[tuple[str, str, str], str] = {}
        self.held_repeats: dict[tuple[str, str, str], str] = {}
        self.lock: Connection | None = None
        self.locked = ""
        self.open()

    def open(self, *, hasty: bool = False) -> None:
        self.memory = Memory(self.home, config=HASTY if hasty else CONFIG)

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.unlock_store()
            self.memory.close()
            shutil.rmtree(self.directory)

    def word(self) -> str:
        return f"word{next(self.numbers)}"

    # -- writing -------------------------------------------------------------------------------------------------------------

    @rule(user=USERS, session=SESSIONS)
    def turn(self, user: str, session: str) -> None:
        text = self.word()
        with memoryd.scope(user=user, session=session):
            accepted = self.memory.sync_turn(f"{text} common", "noted")
        self.check_state(accepted)
        self.model.turns.append(ModelTurn(accepted.event_id, user, session, f"{text} common"))

    @rule(user=USERS, session=SESSIONS, turn_id=st.sampled_from(["t1", "t2"]))
    def turn_with_id(self, user: str, session: str, turn_id: str) -> None:
        text = self.word()
        with memoryd.scope(user=user, session=session):
            accepted = self.memory.sync_turn(f"{text} common", "noted", turn_id=turn_id)
        self.check_state(accepted)
        key = (user, session, turn_id)
        if accepted.reason == "duplicate":
            assert accepted.event_id in (self.turn_ids.get(key), self.held_repeats.get(key))
        elif self.locked == "log.db" and key in self.turn_ids:
            self.held_repeats[key] = accepted.event_id  # held, and found to be a repeat when the log takes it
        else:
            assert key not in self.turn_ids
            self.turn_ids[key] = accepted.event_id
            self.model.turns.append(ModelTurn(accepted.event_id, user, session, f"{text} common"))

    @rule(user=USERS, session=SESSIONS, key=KEYS)
    def store(self, user: str, session: str, key: str) -> None:
        value = self.word()
        with memoryd.scope(user=user, session=session):
            self.check_state(self.memory.store(key, value).accepted)
        self.model.changes.append(Change(user, session, key, value))

    @rule(user=USERS, session=SESSIONS, key=KEYS)
    def delete(self, user: str, session: str, key: str) -> None:
        with memoryd.scope(user=user, session=session):
            self.check_state(self.memory.delete(key).accepted)
        self.model.changes.append(Change(user, session, key, None))

    def check_state(self, accepted: Accepted) -> None:
        states = ("held",) if self.locked == "log.db" else ("journaled",)
        assert accepted.state in states or accepted.reason == "duplicate"

    @precondition(lambda self: self.model.turns and self.locked != "log.db")
    @rule(data=st.data())
    def edit_turn(self, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from(self.model.turns))
        text = f"{self.word()} common"
        with memoryd.scope(user=turn.user):
            try:
                self.memory.edit(turn.id, user=text)
            except DeadlineExceeded:
                assert self.locked
                return
        turn.text = text

    @precondition(lambda self: not self.locked)
    @rule(user=USERS, key=KEYS)
    def edit_memory(self, user: str, key: str) -> None:
        value = self.word()
        with memoryd.scope(user=user, session="s1"):
            memory = self.memory.retrieve(key)
            if memory is None:
                return
            self.memory.edit(memory.id, value)
        self.model.changes.append(Change(user, "s1", key, value))

    # -- forgetting ----------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.turns and not self.locked)
    @rule(data=st.data())
    def forget_turn(self, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from(self.model.turns))
        with memoryd.scope(user=turn.user):
            assert self.memory.forget(turn.id).pending == 0
        self.model.turns.remove(turn)

    @precondition(lambda self: not self.locked)
    @rule(user=USERS, key=KEYS)
    def forget_key(self, user: str, key: str) -> None:
        with memoryd.scope(user=user):
            assert self.memory.forget(key=key).pending == 0
        self.model.changes = [c for c in self.model.changes if (c.user, c.key) != (user, key)]

    @precondition(lambda self: not self.locked)
    @rule(user=USERS, session=SESSIONS)
    def forget_session(self, user: str, session: str) -> None:
        with memoryd.scope(user=user):
            assert self.memory.forget(session=session).pending == 0
        self.drop(user, session)

    @precondition(lambda self: not self.locked)
    @rule(user=USERS)
    def forget_user(self, user: str) -> None:
        with memoryd.scope(user=user):
            assert self.memory.forget(everything=True).pending == 0
        for session in ("s1", "s2"):
            self.drop(user, session)

    def drop(self, user: str, session: str) -> None:
        self.model.turns = [turn for turn in self.model.turns if (turn.user, turn.session) != (user, session)]
        self.model.changes = [c for c in self.model.changes if (c.user, c.session) != (user, session)]

    @precondition(lambda self: self.model.turns and self.locked == "memory.db")
    @rule(data=st.data())
    def forget_during_an_outage(self, data: st.DataObject) -> None:
        """The log is done at once, memory.db when it can be: until then nothing shows what is forgotten."""
        turn = data.draw(st.sampled_from(self.model.turns))
        with memoryd.scope(user=turn.user):
            try:
                self.memory.forget(turn.id)
            except DeadlineExceeded:
                return
        self.model.turns.remove(turn)

    @precondition(lambda self: self.locked == "log.db")
    @rule(user=USERS)
    def forget_while_the_log_is_locked(self, user: str) -> None:
        with memoryd.scope(user=user):
            try:
                self.memory.forget(session="s1")
            except StoreLocked:
                return
        raise AssertionError("a forget that cannot be written down was not refused")

    # -- restarts, locks, outages --------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.locked)
    @rule()
    def restart(self) -> None:
        self.memory.close()
        self.open()

    @precondition(lambda self: not self.locked)
    @rule()
    def restart_from_what_a_kill_leaves(self) -> None:
        """The files at an instant between two commits, as they are after kill -9: no drain, no barrier, no close."""
        image = self.directory / str(next(self.numbers))
        with ExitStack() as locks:
            for name in STORES:
                path = self.store_path(name)
                if path.exists():
                    connection = connect(path, Options())
                    locks.callback(connection.close)
                    locks.enter_context(connection.transaction("IMMEDIATE"))
            shutil.copytree(self.home, image, ignore=shutil.ignore_patterns("*-shm"))
        self.memory.close()
        self.home = image
        self.open()

    @precondition(lambda self: not self.locked)
    @rule()
    def restart_without_the_projection(self) -> None:
        self.memory.close()
        for path in self.store_path("memory.db").parent.glob("memory.db*"):
            path.unlink()
        self.open()

    @precondition(lambda self: not self.locked)
    @rule(name=st.sampled_from(["log.db", "memory.db"]))
    def lock_store(self, name: str) -> None:
        self.memory.drain()
        self.memory.close()
        self.open(hasty=True)
        self.memory.catch_up(20)
        self.lock = connect(self.store_path(name), Options())
        self.lock.run("BEGIN IMMEDIATE")
        self.locked = name

    @precondition(lambda self: self.locked)
    @rule()
    def unlock_store(self) -> None:
        if self.lock is not None:
            self.lock.close()
            self.lock, self.locked = None, ""
            self.held_repeats.clear()
            self.memory.flush(20)
            assert self.memory.drain(20)
            self.memory.close()
            self.open()

    @precondition(lambda self: self.locked == "log.db")
    @rule()
    def restart_while_the_log_is_locked(self) -> None:
        """What is held goes to the spool, and from there into the log."""
        self.memory.close()
        assert self.lock is not None
        self.lock.close()
        self.lock, self.locked = None, ""
        self.held_repeats.clear()
        self.open()

    def store_path(self, name: str) -> Path:
        return open_profile(self.home, "default").directory / name

    # -- agreement -----------------------------------------------------------------------------------------------------------

    @invariant()
    def memories_agree(self) -> None:
        if self.locked == "log.db":
            return  # what is held is not in any answer yet
        for user in ("ada", "bob"):
            with memoryd.scope(user=user):
                try:
                    found = {memory.key: memory.value for memory in self.memory.list_memories()}
                    keys = self.memory.list_keys()
                    versions = {key: [version.value for version in self.memory.history(key)] for key in ("k1", "k2")}
                except DeadlineExceeded:
                    assert self.locked
                    continue
            current = self.model.current(user)
            assert (list(found.items()), keys) == (list(current.items()), list(current))
            assert versions == {key: self.model.versions(user, key) for key in ("k1", "k2")}

    @invariant()
    def recall_agrees(self) -> None:
        if self.locked == "log.db":
            return
        for user in ("ada", "bob"):
            with memoryd.scope(user=user):
                found = self.memory.recall("common", 1000)
            if found.behind or found.stale:
                assert self.locked, "nothing is in the way, and yet the answer is not whole"
                continue
            texts = sorted(hit.text for hit in found if hit.kind == "turn")
            assert texts == sorted(turn.text for turn in self.model.turns_of(user))

    @invariant()
    def the_log_is_in_order(self) -> None:
        """Each turn once, in the order of acceptance within its session."""
        if self.locked == "log.db":
            return
        connection = apsw.Connection(str(self.store_path("log.db")))
        rows = connection.execute("SELECT seq, event_id, at, kind, payload FROM event ORDER BY seq").fetchall()
        connection.close()
        assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
        logged = [event.event_id.hex() for event in (decode_event(*row[1:]) for row in rows) if isinstance(event, Turn)]
        for session in ("s1", "s2"):
            ids = [turn.id for turn in self.model.turns if turn.session == session]
            assert [id for id in logged if id in ids] == ids
        assert sorted(logged) == sorted(turn.id for turn in self.model.turns)


def sized(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )


TestRuntime = Runtime.TestCase
TestRuntime.settings = sized(8, 25)


@pytest.mark.soak
class TestRuntimeForLong(Runtime.TestCase):  # type: ignore[misc,valid-type]  # made by hypothesis
    settings = sized(300, 60)
