"""Processes that stand still, hold a lock or a snapshot, or die while others work on the same profile."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

import memoryd
from memoryd.blocking import Memory
from memoryd.errors import CheckpointBlocked, NotDurable, StoreLocked
from memoryd.store import Options, connect, open_profile, wal_size
from memoryd.testing import CrashChild
from tests.crash.faults import check_files, logged_turns

CHILD = Path(__file__).with_name("child_sibling.py")
CONFIG = {"deadlines": {"checkpoint": 0.5, "store": 0.3, "flush": 0.3, "recall": 1}}
FILES = ("log.db", "memory.db", "archive.db")
ROWS = [{"role": "user", "content": "to be archived"}]


def store_file(home: Path, file: str) -> Path:
    return open_profile(home, "default").directory / file


def sibling(home: Path, *role: str) -> CrashChild:
    """A child in that role, which has come to where it waits."""
    child = CrashChild([CHILD, home, *role])
    try:
        child.wait_for(1)
    except BaseException:
        child.__exit__(None, None, None)
        raise
    return child


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for ``condition``; a minute is a hang, not a measurement."""
    with trio.fail_after(60):
        while not await condition():
            await trio.sleep(0.02)


async def finds(rt: memoryd.Runtime, text: str) -> bool:
    return text in [hit.text for hit in await rt.recall(text)]


async def is_ok(rt: memoryd.Runtime) -> bool:
    return (await rt.status()).state == "ok"


def is_locked(home: Path) -> bool:
    """Whether somebody is inside a write transaction."""
    for file in FILES:
        connection = connect(store_file(home, file), Options(busy_ms=0))
        try:
            with connection.transaction("IMMEDIATE"):
                pass
        except StoreLocked:
            return True
        finally:
            connection.close()
    return False


async def start(home: Path) -> None:
    async with memoryd.open_runtime(home) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("before", "ok")
            await rt.checkpoint([{"role": "user", "content": "before"}])
            await rt.drain()


@pytest.mark.parametrize("processes", [2, 10])
async def test_one_is_stopped_outside_a_write_transaction(tmp_path: Path, processes: int) -> None:
    await start(tmp_path)
    with ExitStack() as children:
        names = [f"c{n}" for n in range(processes - 2)]
        chatting = [CrashChild([CHILD, tmp_path, "chat", name]) for name in names]
        for child in chatting:
            children.enter_context(child)
        stopped = children.enter_context(sibling(tmp_path, "idle"))
        for child in chatting:
            child.wait_for(1)
        stopped.stop()
        while is_locked(tmp_path):
            stopped.resume()
            await trio.sleep(0.01)
            stopped.stop()
        (tmp_path / "go").touch()
        async with memoryd.open_runtime(tmp_path, config=CONFIG) as rt:
            with memoryd.scope(user="ada", session="s1"):
                assert rt.sync_turn("zebra of mine", "ok").state == "journaled"
                assert await finds(rt, "zebra of mine")
                for child in chatting:
                    said = child.wait_for(4)[-1].split()[-1]
                    await until(lambda said=said: finds(rt, said))  # type: ignore[misc]
                assert (await rt.checkpoint(ROWS)).verdict == "archived"
                stopped.resume()
                assert await finds(rt, "zebra of mine")
        told = [line.split() for child in chatting for line in child.kill()[1:]]
    turns = logged_turns(tmp_path)
    assert {event_id: text for state, event_id, text in told if state == "journaled"}.items() <= turns.items()
    assert len(set(turns.values())) == len(turns), "a turn is there twice"
    check_files(tmp_path)


async def while_log_is_locked(rt: memoryd.Runtime, holder: int) -> None:
    held = rt.sync_turn("zebra while locked", "ok")
    assert (held.state, held.seq) == ("held", None)
    assert await finds(rt, "before")
    with pytest.raises(NotDurable):
        await rt.flush()
    assert (await rt.checkpoint(ROWS)).verdict == "archived"
    assert (await rt.status()).state == "degraded"


async def while_memory_is_locked(rt: memoryd.Runtime, holder: int) -> None:
    assert rt.sync_turn("zebra while locked", "ok").state == "journaled"
    assert await finds(rt, "before")
    assert await finds(rt, "zebra while locked")  # from the tail of the log
    stored = await rt.store("city", "Turin")
    assert (stored.accepted.state, stored.applied) == ("journaled", False)
    await rt.flush()
    assert (await rt.checkpoint(ROWS)).verdict == "archived"


async def while_archive_is_locked(rt: memoryd.Runtime, holder: int) -> None:
    assert rt.sync_turn("zebra while locked", "ok").state == "journaled"
    assert await finds(rt, "zebra while locked")
    with pytest.raises(CheckpointBlocked) as blocked:
        await rt.checkpoint(ROWS)
    assert blocked.value.cause == "locked"
    assert "archive.db" in str(blocked.value)
    if sys.platform == "linux":
        assert f"process {holder}" in str(blocked.value)


WHILE_LOCKED = {"log.db": while_log_is_locked, "memory.db": while_memory_is_locked, "archive.db": while_archive_is_locked}


@pytest.mark.parametrize("ending", ["SIGCONT", "SIGKILL"])
@pytest.mark.parametrize("file", FILES)
async def test_one_is_stopped_inside_a_write_transaction(tmp_path: Path, file: str, ending: str) -> None:
    await start(tmp_path)
    async with memoryd.open_runtime(tmp_path, config=CONFIG) as rt:
        with memoryd.scope(user="ada", session="s1"), sibling(tmp_path, "lock", file) as holder:
            holder.stop()
            await WHILE_LOCKED[file](rt, holder.pid)
            if ending == "SIGCONT":
                (tmp_path / "go").touch()
                holder.resume()
                holder.wait_for(2)
            else:
                holder.kill()
            await until(lambda: finds(rt, "zebra while locked"))
            assert (await rt.checkpoint(ROWS)).verdict == "archived"
            await rt.flush(30)
            assert await rt.drain(30)
            await until(lambda: is_ok(rt))
    assert "zebra while locked" in logged_turns(tmp_path).values()
    check_files(tmp_path)


async def test_a_profile_opens_while_a_stopped_process_holds_its_locks(tmp_path: Path) -> None:
    await start(tmp_path)
    with ExitStack() as children:
        holders = [children.enter_context(sibling(tmp_path, "lock", file)) for file in FILES]
        for holder in holders:
            holder.stop()
        async with memoryd.open_runtime(tmp_path, config=CONFIG) as rt:
            with memoryd.scope(user="ada", session="s1"):
                held = rt.sync_turn("zebra while locked", "ok")
                assert held.state == "held"
                assert await finds(rt, "before")
                for holder in holders:
                    holder.kill()
                assert (await rt.settled(held, 30)).state == "journaled"
                await until(lambda: finds(rt, "zebra while locked"))
                assert (await rt.checkpoint(ROWS)).verdict == "archived"


async def test_short_readers_that_are_killed_leave_one_write_ahead_log(tmp_path: Path) -> None:
    await start(tmp_path)
    (tmp_path / "go").touch()
    with sibling(tmp_path, "chat", "writer") as writer, CrashChild([CHILD, tmp_path, "readers", "50"]) as readers:
        readers.wait_for(50, timeout=120)
        assert open_logs(writer.pid, "(deleted)") == []
        told = [line.split() for line in writer.kill()[1:]]
    turns = logged_turns(tmp_path)
    assert told
    assert {event_id: text for state, event_id, text in told if state == "journaled"}.items() <= turns.items()
    check_files(tmp_path)


def open_logs(pid: int, suffix: str) -> list[str]:
    """The write-ahead logs that the process has open under a name that ends so, where the system tells."""
    directory = Path(f"/proc/{pid}/fd")
    targets = [os.readlink(entry) for entry in directory.iterdir()] if directory.is_dir() else []
    assert not directory.is_dir() or any(target.endswith("log.db-wal") for target in targets)
    return [target for target in targets if "-wal" in target and target.endswith(suffix)]


@pytest.mark.parametrize(("file", "grown", "small"), [("log.db", 2 << 20, 256 << 10), ("memory.db", 9 << 20, 8 << 20)])
async def test_a_write_ahead_log_shrinks_under_load_when_a_long_reader_ends(
    tmp_path: Path, file: str, grown: int, small: int
) -> None:
    await start(tmp_path)
    path = store_file(tmp_path, file)
    async with memoryd.open_runtime(tmp_path, config={"log": {"wal_cap_bytes": 256 << 10}}) as rt:

        async def write() -> None:
            with memoryd.scope(user="ada", session="s1"):
                for n in range(20):
                    rt.sync_turn(f"zebra {n} " + "word " * 400, "ok")
            await rt.drain(30)

        async def is_grown() -> bool:
            await write()
            return wal_size(path) > grown

        async def is_small() -> bool:
            await write()
            return wal_size(path) <= small

        with sibling(tmp_path, "read", file) as reader:
            await until(is_grown)
            reader.kill()
            await until(is_small)


def test_writers_behind_a_lock_all_land(tmp_path: Path) -> None:
    trio.run(start, tmp_path)
    with Memory(tmp_path) as memory, sibling(tmp_path, "lock", "log.db") as holder:

        def write(n: int) -> None:
            with memoryd.scope(user="ada", session=f"s{n}"):
                for k in range(5):
                    assert memory.sync_turn(f"zebra {n} {k}", "ok").state == "held"

        threads = [threading.Thread(target=write, args=(n,)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (tmp_path / "go").touch()
        holder.wait_for(2)
        memory.flush(60)
    turns = list(logged_turns(tmp_path).values())
    assert sorted(turns) == sorted(["before", *(f"zebra {n} {k}" for n in range(20) for k in range(5))])
    for n in range(20):
        assert [text for text in turns if text.startswith(f"zebra {n} ")] == [f"zebra {n} {k}" for k in range(5)]


@pytest.mark.parametrize("file", FILES)
async def test_a_sibling_that_vacuums_aborts_no_turn(tmp_path: Path, file: str) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            for n in range(200):
                rt.sync_turn(f"filler {n} " + "word " * 1000, "ok")
            await rt.checkpoint([{"role": "user", "content": os.urandom(1000).hex()} for _ in range(500)])
            await rt.drain()
            with sibling(tmp_path, "vacuum", file) as vacuum:
                accepted = []
                with trio.fail_after(60):
                    while len(vacuum.acks) < 5:
                        accepted.append(rt.sync_turn(f"zebra {len(accepted)}", "ok"))
                        await rt.recall("filler")
                (tmp_path / "go").touch()
                await rt.flush(30)
                assert (await rt.checkpoint(ROWS)).verdict == "archived"
                assert await rt.drain(30)
    turns = [text for text in logged_turns(tmp_path).values() if text.startswith("zebra")]
    assert turns == [f"zebra {n}" for n in range(len(accepted))]
    check_files(tmp_path)
