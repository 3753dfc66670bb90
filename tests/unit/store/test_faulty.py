from __future__ import annotations

import os
from pathlib import Path

import pytest

from memoryd.errors import StoreError
from memoryd.store import Connection, Options, connect, wal_path
from memoryd.testing import Fault, FaultyVFS

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
