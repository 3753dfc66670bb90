"""Every operation of the disk fails once: nothing that was promised is lost, nothing is damaged, errors are typed, all recovers."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
import trio

import memoryd
from memoryd.core import Scope, Turn, new_event_id
from memoryd.errors import BarrierFailed, MemorydError, StoreError
from memoryd.journal import Journal, Limits
from memoryd.store import Options, Schema, backup_path, connect, open_profile, prepare
from memoryd.testing import Fault, FaultyVFS
from tests.crash.faults import (
    CONFIG,
    PLANTED,
    TARGETS,
    TRANSCRIPT,
    Promises,
    Target,
    build_home,
    check_files,
    check_promises,
    faults,
    goes_on,
    quietly,
)

SAMPLE = 2  # faults of each kind of operation in each scenario; all of them under soak
Act = Callable[[memoryd.Runtime, Promises], Awaitable[None]]
Run = Callable[[Path, Path, FaultyVFS, Fault | None], Awaitable[None]]  # a prepared home, a place for this run, the disk, its fault


# -- what is done while the disk fails -----------------------------------------------------------------------------------------


async def append(rt: memoryd.Runtime, promises: Promises) -> None:
    for n in range(8):
        promises.turn(rt, f"appended {n}")
        await trio.lowlevel.checkpoint()


async def project(rt: memoryd.Runtime, promises: Promises) -> None:
    for n in range(4):
        promises.turn(rt, f"projected {n}")
    await quietly(lambda: rt.store("city", "Rome"), lambda: rt.delete("city"), rt.drain)
    await read(rt, promises)


async def read(rt: memoryd.Runtime, promises: Promises) -> None:
    await quietly(lambda: rt.retrieve("city"), lambda: rt.query("o"), rt.list_memories, lambda: rt.history("city"), rt.checkpoints)
    await rt.recall("zebra")  # these never raise
    await rt.prefetch("zebra")
    await rt.status()


async def checkpoint(rt: memoryd.Runtime, promises: Promises) -> None:
    grown = [*TRANSCRIPT, {"role": "user", "content": "one more"}, {"role": "assistant", "content": "x" * 200_000}]
    await quietly(lambda: promises.checkpoint(rt, grown), rt.checkpoints, rt.verify)
    await rt.status()


async def forget(rt: memoryd.Runtime, promises: Promises) -> None:
    await quietly(lambda: promises.forget(rt, PLANTED, session="s2"))
    await rt.status()


async def forget_again(rt: memoryd.Runtime, promises: Promises) -> None:
    """On the healed disk a second call finishes what the first one could not."""
    await promises.forget(rt, PLANTED, session="s2")
    assert PLANTED in promises.forgotten


async def nothing(rt: memoryd.Runtime, promises: Promises) -> None:
    pass


# -- runs ------------------------------------------------------------------------------------------------------------------------


def acting(act: Act, afterwards: Act = nothing) -> Run:
    """The disk fails during ``act`` and is healed; the same runtime has to go on."""

    async def run(built: Path, home: Path, disk: FaultyVFS, fault: Fault | None) -> None:
        shutil.copytree(built, home)
        promises = Promises()
        async with memoryd.open_runtime(home, config=CONFIG, vfs=disk.name) as rt:
            with memoryd.scope(user="ada", session="s1"):
                disk.arm(fault)
                await act(rt, promises)
                disk.heal()
                await goes_on(rt, promises)
                await afterwards(rt, promises)
        check_files(home)
        await check_promises(home, promises)

    return run


async def open_new(built: Path, home: Path, disk: FaultyVFS, fault: Fault | None) -> None:
    """The disk fails while a profile is opened, used and closed: any part of that may be refused, with a typed error."""
    promises = Promises()
    disk.arm(fault)
    with suppress(MemorydError):
        async with memoryd.open_runtime(home, config=CONFIG, vfs=disk.name) as rt:
            with memoryd.scope(user="ada", session="s1"):
                promises.turn(rt, "appended while opening")
                await quietly(lambda: promises.checkpoint(rt, TRANSCRIPT), rt.drain, rt.flush)
    disk.heal()
    async with memoryd.open_runtime(home, config=CONFIG, vfs=disk.name) as rt:
        with memoryd.scope(user="ada", session="s1"):
            await goes_on(rt, promises)
    check_files(home)
    await check_promises(home, promises)


async def open_used(built: Path, home: Path, disk: FaultyVFS, fault: Fault | None) -> None:
    shutil.copytree(built, home)
    await open_new(built, home, disk, fault)


async def barrier(built: Path, home: Path, disk: FaultyVFS, fault: Fault | None) -> None:
    """A barrier succeeds, or says that it failed, and then only after the log was rewritten with a sync of its own."""
    shutil.copytree(built, home)
    promises = Promises()
    journal = Journal(open_profile(home, "default"), Limits(), vfs=disk.name, fdatasync=disk.fdatasync)
    disk.arm(fault)
    for n in range(6):
        turn = Turn(new_event_id(), Scope(user="ada", session="s1"), n, f"before barrier {n}", "noted")
        if journal.append(turn).state == "journaled":
            promises.journaled[turn.event_id.hex()] = turn.user
        else:
            promises.refused.add(turn.user)
        synced, was_safe = disk.count("sync", "db"), journal.power_safe
        with suppress(BarrierFailed):
            assert journal.barrier() == journal.last_seq
            assert was_safe or disk.count("sync", "db") > synced
    disk.heal()
    synced, was_safe = disk.count("sync", "db"), journal.power_safe
    assert journal.barrier() == journal.last_seq == journal.synced
    assert journal.power_safe
    assert was_safe or disk.count("sync", "db") > synced
    journal.close()
    check_files(home)
    await check_promises(home, promises)


ONE = "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT)"
TWO = "ALTER TABLE note ADD COLUMN length INTEGER; UPDATE note SET length = length(text); CREATE INDEX note_length ON note (length)"


async def migrate(built: Path, home: Path, disk: FaultyVFS, fault: Fault | None) -> None:
    """An older file stays as it was or becomes one of today; a backup that has its name is whole."""
    profile = open_profile(home, "default")
    path = profile.directory / "notes.db"
    prepare(path, Schema("notes", (ONE,)), profile)
    connection = connect(path, Options())
    connection.executemany("INSERT INTO note (text) VALUES (?)", [("word " * 200 + str(n),) for n in range(100)])
    connection.close()
    disk.arm(fault)
    with suppress(StoreError):
        prepare(path, Schema("notes", (ONE, TWO)), profile, vfs=disk.name)
    disk.heal()
    assert notes(path) == 100
    backup = backup_path(path, 1)
    assert not backup.exists() or notes(backup) == 100
    prepare(path, Schema("notes", (ONE, TWO)), profile, vfs=disk.name)
    assert notes(path) == notes(backup) == 100
    assert not list(path.parent.glob("*.draft*"))
    check_files(home)


def notes(path: Path) -> int:
    """The rows of a file, which is sound."""
    connection = apsw.Connection(str(path))
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return int(connection.execute("SELECT count(*) FROM note").fetchall()[0][0])
    finally:
        connection.close()


RUNS: dict[str, Run] = {
    "append": acting(append),
    "barrier": barrier,
    "projection": acting(project),
    "checkpoint": acting(checkpoint),
    "forget": acting(forget, forget_again),
    "open-new": open_new,
    "open-used": open_used,
    "migrate": migrate,
}


async def each_fault(tmp_path: Path, built: Path, run: Run, target: Target, sample: int | None) -> None:
    """Count the operations of a run without a fault, then let each of them (or a sample) fail in a run of its own."""

    async def one(number: int, fault: Fault | None) -> int:
        home = tmp_path / str(number)
        with target.disk(f"{target}-{number}") as disk:
            await run(built, home, disk, fault)
            count = disk.count(target.operation, target.file)
        shutil.rmtree(home)
        return count

    count = await one(0, None)
    for number, fault in enumerate(faults(target, count, sample, tmp_path.name), 1):
        try:
            await one(number, fault)
        except BaseException as error:
            error.add_note(str(fault))
            raise


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("built") / "home"
    trio.run(build_home, home)
    return home


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", RUNS)
async def test_a_fault(tmp_path: Path, built: Path, name: str, target: Target) -> None:
    await each_fault(tmp_path, built, RUNS[name], target, SAMPLE)


# SQLite does not listen when a file cannot be deleted at a close: the disk's error has nowhere to go but the interpreter's hook
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.soak
@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", RUNS)
async def test_every_fault(tmp_path: Path, built: Path, name: str, target: Target) -> None:
    await each_fault(tmp_path, built, RUNS[name], target, None)
