from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.errors import StoreError, StoreLocked
from memoryd.store import Connection, Options, ProfileStore, Schema, connect, prepare, wal_path
from memoryd.testing import Fault, FaultyVFS

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the hook is for Linux; on macOS it refuses")

INSERT = "INSERT INTO note (text) VALUES (?)"


def test_write_ahead_logging_works_through_it_beside_others(store: Path, disk: FaultyVFS, connection: Connection) -> None:
    faulty = connect(store, Options(autocheckpoint=0), vfs=disk.name)
    faulty.insert(INSERT, (b"faulty",))
    connection.insert(INSERT, (b"plain",))
    assert faulty.all("SELECT text FROM note") == connection.all("SELECT text FROM note") == [(b"faulty",), (b"plain",)]
    faulty.close()


def test_operations_are_counted_by_kind_and_file(store: Path, disk: FaultyVFS) -> None:
    connection = connect(store, Options(synchronous="FULL", autocheckpoint=0), vfs=disk.name)
    assert disk.count("open", "db") == 1
    disk.arm(None)
    connection.insert(INSERT, (b"x",))
    assert disk.count("sync", "wal") == 2  # the header of a new log, then the commit
    assert disk.count("write", "db") == 0
    assert disk.count("write") == disk.count("write", "wal") > 0
    connection.checkpoint("TRUNCATE")
    assert disk.count("sync", "db") == 1
    assert disk.count("truncate", "wal") == 1
    connection.close()


def test_one_fault_or_every_one_from_the_nth(store: Path, disk: FaultyVFS) -> None:
    connection = connect(store, Options(synchronous="FULL", autocheckpoint=0), vfs=disk.name)
    connection.insert(INSERT, (b"x",))
    outcomes = []
    for lasting in (False, True):
        disk.arm(Fault("sync", "EIO", nth=2, lasting=lasting))
        for n in range(4):
            try:
                outcomes.append(connection.insert(INSERT, (b"%d" % n,)) > 0)
            except StoreError:
                outcomes.append(False)
    assert outcomes == [True, False, True, True, True, False, False, False]
    assert disk.fired == 3
    disk.heal()
    connection.insert(INSERT, (b"healed",))
    connection.close()


def test_a_fault_for_one_kind_of_file_spares_the_others(store: Path, disk: FaultyVFS) -> None:
    connection = connect(store, Options(synchronous="FULL", autocheckpoint=0), vfs=disk.name)
    disk.arm(Fault("write", "EIO", file="db"))
    connection.insert(INSERT, (b"x",))
    assert disk.fired == 0
    with pytest.raises(StoreError):
        connection.checkpoint("TRUNCATE")
    assert disk.fired == 1
    connection.close()


def test_a_short_write_leaves_half(store: Path, disk: FaultyVFS) -> None:
    connection = connect(store, Options(autocheckpoint=0), vfs=disk.name)
    connection.insert(INSERT, (b"x",))
    before = wal_path(store).stat().st_size
    disk.arm(Fault("write", "short", nth=2))  # the frame's header, then its page of 4096
    with pytest.raises(StoreError):
        connection.insert(INSERT, (b"y",))
    assert wal_path(store).stat().st_size == before + 24 + 2048
    connection.insert(INSERT, (b"z",))
    assert connection.all("SELECT text FROM note") == [(b"x",), (b"z",)]
    connection.close()


def test_the_barrier_s_sync_is_one_of_the_log(disk: FaultyVFS, tmp_path: Path) -> None:
    fd = os.open(tmp_path / "file", os.O_CREAT | os.O_RDWR, 0o600)
    disk.arm(Fault("sync", "ENOSPC", nth=2))
    disk.fdatasync(fd)
    with pytest.raises(OSError, match=os.strerror(28)):
        disk.fdatasync(fd)
    assert disk.count("sync", "wal") == 2
    os.close(fd)


@pytest.mark.parametrize(("operation", "kind"), [("sync", "short"), ("read", "busy"), ("open", "short")])
def test_a_fault_that_cannot_be_is_refused(operation: str, kind: str) -> None:
    with pytest.raises(ValueError, match=f"a {operation} cannot be {kind}"):
        Fault(operation, kind)  # type: ignore[arg-type]


@pytest.fixture
def locks() -> Iterator[FaultyVFS]:
    with FaultyVFS("locks", shm_locks=True) as disk:
        yield disk


@on_linux
def test_a_lock_of_the_log_is_counted_for_its_own_files(store: Path, locks: FaultyVFS, profile: ProfileStore) -> None:
    own = connect(store, Options(autocheckpoint=0), vfs=locks.name)
    own.insert(INSERT, (b"x",))
    locks.arm(None)
    own.insert(INSERT, (b"y",))
    assert locks.count("lock", "shm") > 0
    elsewhere = profile.directory / "other.db"
    prepare(elsewhere, Schema("other", ("CREATE TABLE other (id INTEGER PRIMARY KEY)",)), profile)
    locks.arm(None)
    connect(elsewhere, Options()).close()
    assert locks.count("lock", "shm") == 0
    own.close()


@on_linux
def test_every_lock_of_a_scenario_can_fail(store: Path, locks: FaultyVFS) -> None:
    def scenario() -> None:
        own = connect(store, Options(busy_ms=0, autocheckpoint=0), vfs=locks.name)
        try:
            own.insert(INSERT, (b"x",))
            own.all("SELECT * FROM note")
            own.checkpoint("TRUNCATE")
        finally:
            own.close()

    scenario()
    raised = 0
    for nth in range(1, locks.count("lock", "shm") + 1):
        locks.arm(Fault("lock", "busy", nth, file="shm"))
        try:
            scenario()
        except StoreLocked:
            raised += 1
        assert locks.fired == 1
        locks.heal()
        scenario()
    assert raised > 0  # of some locks SQLite itself tries again, or does without


@on_linux
def test_the_hook_ends_with_its_block(store: Path) -> None:
    with FaultyVFS("first", shm_locks=True) as disk:
        connect(store, Options(), vfs=disk.name).close()
        assert disk.count("lock", "shm") > 0
    disk.arm(Fault("lock", "busy", file="shm", lasting=True))
    plain = connect(store, Options())
    plain.insert(INSERT, (b"x",))
    assert disk.fired == disk.count("lock") == 0
    plain.close()
