"""Several processes and connections on one store: each event once, in order; a lock is transient, never an event's fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apsw
import pytest
import trio

from memoryd.core import Cursor, Entry, Outcome, Query, Scope, Turn
from memoryd.errors import BackendTransient, ClosedError
from tests.adapters.local.conftest import Local, backend_in

EVENTS = 400
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
RACER = """
import sys, trio
from pathlib import Path
from memoryd.core import Cursor, Entry, Scope, Turn
from memoryd.errors import BackendTransient
from tests.adapters.local.conftest import backend_in

async def main():
    entries = [
        Entry(Cursor("first", seq), Turn(seq.to_bytes(16, "big"), Scope(user="ada", session="s1"), seq, f"race word{seq}", "answer"))
        for seq in range(1, int(sys.argv[2]) + 1)
    ]
    backend = backend_in(Path(sys.argv[1]))
    await backend.open()
    while (done := (await backend.position()).seq) < len(entries):
        try:
            await backend.apply(entries[done:done + 7])
        except BackendTransient:
            pass
    await backend.aclose()

trio.run(main)
"""


async def test_racing_processes_project_each_event_once_and_in_order(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RACER, str(tmp_path), str(EVENTS)]
    racers = [subprocess.Popen(command, cwd=Path(__file__).parents[3]) for _ in range(3)]
    assert [racer.wait(120) for racer in racers] == [0, 0, 0]
    backend = backend_in(tmp_path)
    await backend.open()
    assert await backend.position() == Cursor("first", EVENTS)
    assert (await backend.counts())["turns"] == EVENTS
    hits = await backend.recall(Query("ada", "race", limit=1000))
    assert sorted(hit.seq or 0 for hit in hits) == list(range(1, EVENTS + 1))
    await backend.check_index()
    await backend.aclose()


async def test_two_backends_see_what_the_other_wrote(tmp_path: Path) -> None:
    one, two = backend_in(tmp_path), backend_in(tmp_path)
    await one.open()
    await two.open()
    entries = [
        Entry(Cursor("e", seq), Turn(seq.to_bytes(16, "big"), Scope(user="ada", session="s"), seq, f"word{seq}", ""))
        for seq in range(1, 21)
    ]
    for start in range(0, 20, 4):
        writer, reader = (one, two) if start % 8 else (two, one)
        assert await writer.apply(entries[: start + 4]) == [Outcome("ok")] * (start + 4)
        assert [hit.seq for hit in await reader.recall(Query("ada", f"word{start + 4}"))] == [start + 4]
    await one.aclose()
    await two.aclose()


async def test_a_lock_is_transient_and_reads_go_on(local: Local) -> None:
    await local.turn("before the lock")
    other = apsw.Connection(str(next(local.path.rglob("memory.db"))))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BackendTransient):
        await local.turn("during the lock")
    assert not await local.backend.health()
    assert await local.found("before the lock") == ["before the lock"]
    other.execute("ROLLBACK")
    assert await local.backend.apply(local.log.entries) == [Outcome("ok")] * 2
    assert await local.backend.health()
    assert await local.found("during") == ["during the lock"]
    other.close()


async def test_a_closed_backend_says_so(tmp_path: Path) -> None:
    backend = backend_in(tmp_path)
    with pytest.raises(ClosedError):
        await backend.position()
    await backend.open()
    await backend.aclose()
    await backend.aclose()
    with pytest.raises(ClosedError):
        await backend.recall(Query("ada", "x"))


async def test_a_cancelled_recall_returns_at_once_and_hurts_nothing(local: Local) -> None:
    for number in range(20):
        await local.turn(f"steady word {number}")
    for _ in range(30):
        with trio.CancelScope() as scope:
            scope.cancel()
            await local.recall("steady word")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(local.recall, "steady word")
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert len(await local.recall("steady word", limit=50)) == 20


async def test_a_read_ends_at_its_deadline(local: Local) -> None:
    lane = local.backend._readers[0]
    with pytest.raises(BackendTransient):
        await lane.read(lambda side: side.connection.all(ENDLESS), 0.05)
    assert await local.recall("anything") == []


async def test_it_says_what_it_is(local: Local) -> None:
    info = local.backend.info
    assert (info.name, info.label, info.is_cloud, info.requires_api_key) == ("local", "local (SQLite)", False, False)
    assert Path(info.data_location) == next(local.path.rglob("memory.db"))
    assert local.backend.is_available()
    assert await local.backend.health()
    assert (next(local.path.rglob("memory.db")).stat().st_mode & 0o777) == 0o600
