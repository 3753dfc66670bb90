"""A home on a failing disk: what a run was promised, and what must be true of the files afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import apsw
import attrs
import trio

import memoryd
from memoryd.core import Accepted, Turn, canonical_bytes, decode_event
from memoryd.errors import JournalUnavailable, MemorydError
from memoryd.store import open_profile
from memoryd.testing import Fault, FaultKind, FaultyVFS, FileKind, Operation

CONFIG: Mapping[str, Any] = {
    "deadlines": {"store": 0.3, "recall": 0.3, "retrieve": 0.3, "query": 0.3, "flush": 0.3, "drain": 0.3, "close": 1, "checkpoint": 2},
    "logging": {"level": "off"},
}


@attrs.frozen
class Target:
    """What fails: an operation, of one kind of file or of any, in each of the ways that it can fail."""

    operation: Operation
    kinds: tuple[FaultKind, ...]
    file: FileKind | None = None

    def __str__(self) -> str:
        return f"{self.file or 'any'}-{self.operation}"

    def disk(self, name: str) -> FaultyVFS:
        return FaultyVFS(name, shm_locks=self.file == "shm")


TARGETS = (
    Target("open", ("EIO", "EACCES")),
    Target("read", ("EIO",)),
    Target("write", ("EIO", "ENOSPC", "short")),
    Target("sync", ("EIO", "ENOSPC")),
    Target("truncate", ("EIO", "ENOSPC")),
    Target("delete", ("EIO",)),
    Target("lock", ("EIO", "busy")),
    Target("lock", ("EIO",), "shm"),
)
PLANTED = "xyzzyplanted"
TRANSCRIPT = [
    {"role": role, "content": text}
    for n in range(20)
    for role, text in (("user", f"question number {n}"), ("assistant", f"answer number {n}"))
]


@attrs.define
class Promises:
    """What callers were told during one run."""

    journaled: dict[str, str] = attrs.field(factory=dict)
    """Event id to the user's text."""
    held: list[Accepted] = attrs.field(factory=list)
    refused: set[str] = attrs.field(factory=set)
    receipts: dict[str, list[dict[str, str]]] = attrs.field(factory=dict)
    forgotten: set[str] = attrs.field(factory=set)

    def turn(self, rt: memoryd.Runtime, text: str) -> None:
        """Accept one turn and note what was said about it."""
        try:
            accepted = rt.sync_turn(text, "noted")
        except JournalUnavailable:
            self.refused.add(text)
            return
        if accepted.state == "journaled":
            self.journaled[accepted.event_id] = text
        else:
            self.held.append(accepted)

    async def checkpoint(self, rt: memoryd.Runtime, messages: list[dict[str, str]]) -> None:
        receipt = await rt.checkpoint(messages)
        assert receipt.verdict == "archived"
        self.receipts[receipt.id] = messages

    async def forget(self, rt: memoryd.Runtime, word: str, **what: Any) -> None:
        done = await rt.forget(**what)
        if done.pending == 0:
            self.forgotten.add(word)


def faults(target: Target, count: int, sample: int | None, seed: str) -> list[Fault]:
    """A fault for every n-th of ``count`` operations, of each kind, once alone and once for good; or a random ``sample`` of them, after
    the one that lets every operation fail."""
    every = [
        Fault(target.operation, kind, nth, target.file, lasting)
        for nth in range(1, count + 1)
        for kind in target.kinds
        for lasting in (True, False)[target.file == "shm" :]  # SQLite waits ten seconds for such a lock
    ]
    return every if sample is None or len(every) <= sample else [every[0], *Random(seed).sample(every[1:], sample)]


async def goes_on(rt: memoryd.Runtime, promises: Promises) -> None:
    """On a healed disk the same runtime takes turns, keeps what it held, archives, and comes to *ok* by itself."""
    promises.turn(rt, "after the fault")
    assert "after the fault" in promises.journaled.values() or promises.held
    for accepted in promises.held:
        settled = await rt.settled(accepted, 20)
        assert settled.state == "journaled"
    await rt.flush(20)
    assert await rt.drain(20)
    await promises.checkpoint(rt, [*TRANSCRIPT, {"role": "user", "content": "after the fault"}])
    await until_found(rt, "after the fault")
    with trio.fail_after(30):
        while (status := await rt.status()).state != "ok":
            await trio.sleep(0.02)
    assert status.log is not None and status.log.power_safe


def check_files(home: Path) -> None:
    """No file of the profile is damaged, nor is the full-text index."""
    for path in sorted(open_profile(home, "default").directory.glob("*.db")):
        connection = apsw.Connection(str(path))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], path.name
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE sql LIKE '%USING fts5%'").fetchall()
        for (table,) in tables:
            connection.execute(f"INSERT INTO {table}({table}) VALUES('integrity-check')")
        connection.close()


def logged_turns(home: Path) -> dict[str, str]:
    """The turns of the log by event id, through a plain connection; the log has no gap."""
    connection = apsw.Connection(str(open_profile(home, "default").directory / "log.db"))
    rows = connection.execute("SELECT seq, event_id, at, kind, payload FROM event ORDER BY seq").fetchall()
    connection.close()
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    events = [decode_event(*row[1:]) for row in rows]
    return {event.event_id.hex(): event.user for event in events if isinstance(event, Turn)}


async def check_promises(home: Path, promises: Promises) -> None:
    """Everything that was told is true of the files, and of a runtime that opens them afresh."""
    turns = logged_turns(home)
    assert promises.journaled.items() <= turns.items(), "a journaled turn is lost"
    assert not promises.refused & set(turns.values()), "a refused turn is there all the same"
    assert not any(found_in(home, word) for word in promises.forgotten)
    async with memoryd.open_runtime(home) as rt:
        assert await rt.catch_up(30) == 0
        status = await rt.status()
        assert status.state == "ok"
        assert status.backends[0].rows["turns"] == len(turns)
        with memoryd.scope(user="ada", session="s1"):
            assert (await rt.verify()).ok
            for id, messages in promises.receipts.items():
                assert [row for row in (await rt.restore(id)).rows if row] == [canonical_bytes(message) for message in messages]
            for text in promises.journaled.values():
                await until_found(rt, text)


async def until_found(rt: memoryd.Runtime, text: str) -> None:
    """Recall until ``text`` is found: on a busy machine a single call may meet its deadline, and then says so."""
    with trio.fail_after(30):
        while True:
            found = await rt.recall(text)
            if text in [hit.text for hit in found]:
                return
            assert found.stale or found.behind, "nothing was missing, and yet it is not found"


def found_in(home: Path, word: str) -> list[str]:
    """The files below ``home`` that hold ``word``."""
    return [str(path) for path in home.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


async def build_home(home: Path) -> None:
    """A profile with turns, memories, a checkpoint, and one turn to be forgotten."""
    async with memoryd.open_runtime(home, config=CONFIG) as rt:
        with memoryd.scope(user="ada", session="s2"):
            rt.sync_turn(f"the word is {PLANTED}", "noted", turn_id="planted")
            await rt.checkpoint([{"role": "user", "content": f"the word is {PLANTED}"}, {"role": "assistant", "content": "noted"}])
        with memoryd.scope(user="ada", session="s1"):
            for n in range(20):
                rt.sync_turn(f"zebra number {n}", "noted")
            await rt.store("city", "Turin")
            await rt.checkpoint(TRANSCRIPT)
        assert await rt.drain(10)


async def quietly(*calls: Callable[[], Awaitable[object]]) -> None:
    """Make each call; a typed error is an answer, anything else is a bug."""
    for call in calls:
        with suppress(MemorydError):
            await call()
