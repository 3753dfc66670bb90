"""Every condition of the disk becomes one typed error that names the file, and nothing is half-written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
import pytest

from memoryd.errors import InvalidInput, StoreBroken, StoreCorrupt, StoreError, StoreFull, StoreLocked, StoreReadOnly
from memoryd.store import (
    Connection,
    Options,
    ProfileStore,
    Schema,
    connect,
    free_bytes,
    open_profile,
    os_errors,
    prepare,
    wal_path,
    write_private,
)
from memoryd.testing import Fault, FaultKind, FaultyVFS, Operation

INSERT = "INSERT INTO note (text) VALUES (?)"
SCHEMA = Schema("notes", ("CREATE TABLE note (id INTEGER PRIMARY KEY, text BLOB)",))


@pytest.fixture
def failing(store: Path, disk: FaultyVFS) -> Iterator[Connection]:
    connection = connect(store, Options(synchronous="FULL", autocheckpoint=0), vfs=disk.name)
    connection.insert(INSERT, (b"before",))
    yield connection
    disk.heal()
    connection.close()


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault("write", "ENOSPC"), StoreFull),
        (Fault("write", "short"), StoreFull),
        (Fault("write", "EIO"), StoreBroken),
        (Fault("write", "EACCES"), StoreReadOnly),
        (Fault("sync", "EIO"), StoreBroken),
        (Fault("sync", "ENOSPC"), StoreFull),
    ],
)
def test_a_commit_that_fails_is_typed_and_the_next_works(
    failing: Connection, disk: FaultyVFS, fault: Fault, expected: type[StoreError]
) -> None:
    disk.arm(fault)
    with pytest.raises(expected) as caught:
        failing.insert(INSERT, (b"x" * 9000,))
    assert type(caught.value) is expected
    assert caught.value.path == str(failing.path)
    assert isinstance(caught.value.__cause__, apsw.Error)
    assert disk.fired == 1
    failing.insert(INSERT, (b"after",))
    assert failing.all("SELECT text FROM note") == [(b"before",), (b"after",)]
    assert failing.all("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("kind", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("operation", ["read", "write", "sync"])
def test_a_checkpoint_that_fails_is_typed_and_loses_nothing(
    failing: Connection, disk: FaultyVFS, operation: Operation, kind: FaultKind
) -> None:
    disk.arm(Fault(operation, kind))
    with pytest.raises(StoreError):
        failing.checkpoint("TRUNCATE")
    failing.checkpoint("TRUNCATE")
    assert failing.all("SELECT text FROM note") == [(b"before",)]


def test_a_full_disk_that_lasts_recovers_by_itself(failing: Connection, disk: FaultyVFS) -> None:
    disk.arm(Fault("write", "ENOSPC", lasting=True))
    for _ in range(3):
        with pytest.raises(StoreFull), failing.transaction():
            failing.insert(INSERT, (b"no room",))
        assert not failing.in_transaction
    disk.heal()
    failing.insert(INSERT, (b"room",))
    assert failing.one("SELECT count(*) FROM note") == (2,)


def test_a_read_that_fails_is_typed(store: Path, disk: FaultyVFS, connection: Connection) -> None:
    connection.executemany(INSERT, [(b"x" * 4000,)] * 50)
    connection.checkpoint("TRUNCATE")
    reader = connect(store, Options(readonly=True), vfs=disk.name)
    disk.arm(Fault("read", "EIO", file="db", lasting=True))
    with pytest.raises(StoreBroken):
        reader.all("SELECT * FROM note")
    disk.arm(Fault("read", "short", file="db", lasting=True))
    with pytest.raises((StoreBroken, StoreCorrupt)):
        reader.all("SELECT * FROM note")
    disk.heal()
    reader.close()  # its cache holds half pages: SQLite takes a short read for the end of the file
    again = connect(store, Options(readonly=True), vfs=disk.name)
    assert len(again.all("SELECT * FROM note")) == 50
    again.close()


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault("open", "EACCES", file="wal"), StoreReadOnly),
        (Fault("open", "ENOSPC", file="wal"), StoreFull),
        (Fault("open", "EIO"), StoreBroken),
        (Fault("lock", "busy", lasting=True), StoreLocked),
        (Fault("lock", "EIO"), StoreBroken),
    ],
)
def test_an_open_that_fails_is_typed(store: Path, disk: FaultyVFS, fault: Fault, expected: type[StoreError]) -> None:
    disk.arm(fault)
    with pytest.raises(expected):
        connect(store, Options(busy_ms=20), vfs=disk.name).all("SELECT * FROM note")
    disk.heal()
    connection = connect(store, Options(), vfs=disk.name)
    assert connection.insert(INSERT, (b"fine",)) == 1
    connection.close()


def test_every_failing_step_of_creation_leaves_a_store_that_opens(profile: ProfileStore, disk: FaultyVFS) -> None:
    def create(name: str) -> None:
        prepare(profile.directory / name, SCHEMA, profile, vfs=disk.name)

    create("counted.db")
    operations: tuple[Operation, ...] = ("open", "read", "write", "sync", "truncate", "lock", "delete")
    steps = {operation: disk.count(operation) for operation in operations}
    assert all(steps[op] for op in ("open", "read", "write", "sync", "lock")), steps
    for operation, many in steps.items():
        for nth in range(1, many + 1):
            name = f"{operation}{nth}.db"
            disk.arm(Fault(operation, "EIO", nth))
            with suppress(StoreError):  # never another exception; it may also succeed
                create(name)
            disk.heal()
            create(name)
            opened = connect(profile.directory / name, Options())
            assert opened.insert(INSERT, (b"x",)) == 1
            assert opened.all("PRAGMA integrity_check") == [("ok",)]
            opened.close()


def test_a_corrupt_page_is_corruption(store: Path, connection: Connection) -> None:
    connection.executemany(INSERT, [(b"x" * 4000,)] * 50)
    connection.close()
    with store.open("r+b") as file:  # no connection is open: nobody's locks to drop
        file.seek(2 * 4096)
        file.write(os.urandom(30 * 4096))
    damaged = connect(store, Options())
    with pytest.raises(StoreCorrupt, match="nothing was deleted") as caught:
        damaged.all("SELECT * FROM note")
    assert caught.value.path == str(store)
    damaged.close()
    assert store.exists()


def test_another_kind_of_file_is_corruption(store: Path) -> None:
    store.write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StoreCorrupt):
        connect(store, Options())


def test_a_value_beyond_sqlite_names_the_field(connection: Connection) -> None:
    with pytest.raises(InvalidInput):
        connection.insert("INSERT INTO note (text) VALUES (zeroblob(1000000001))")


def test_a_file_system_error_is_typed(tmp_path: Path) -> None:
    with pytest.raises(StoreBroken), os_errors(tmp_path):
        os.stat(tmp_path / "none")
    with pytest.raises(StoreBroken):
        write_private(tmp_path / "none" / "file", b"x")


@contextmanager
def forbidden(directory: Path) -> Iterator[None]:
    """This user may not enter ``directory`` in the block; root steps down for it, because no mode stops root."""
    if os.geteuid() == 0:
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)
    else:
        os.chmod(directory, 0)
        try:
            yield
        finally:
            os.chmod(directory, 0o700)


def test_a_directory_without_access_is_typed(profile: ProfileStore, store: Path) -> None:
    with forbidden(profile.directory):
        with pytest.raises(StoreReadOnly, match="check owner, mode and mount"):
            open_profile(profile.directory.parent.parent, "default")
        with pytest.raises(StoreReadOnly):
            connect(store, Options())
        with pytest.raises(StoreReadOnly):
            prepare(store, SCHEMA, profile)
        with pytest.raises(StoreReadOnly):
            write_private(profile.directory / "file", b"x")
        with pytest.raises(StoreReadOnly):
            free_bytes(profile.directory / "file")
    connect(store, Options()).close()


def test_a_path_that_is_too_long_is_typed(tmp_path: Path) -> None:
    with pytest.raises(StoreBroken):
        open_profile(tmp_path / ("x" * 300), "default")


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB of its own.  Only root can have one; the fault tests above cover the same errors for everybody."""
    point = tmp_path / "mount"
    point.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "memoryd-test", str(point)]).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield point
    subprocess.run(["umount", "-l", str(point)], check=True)


def test_a_disk_that_really_fills_up(mount: Path) -> None:
    profile = open_profile(mount, "default")
    path = profile.directory / "notes.db"
    prepare(path, SCHEMA, profile)
    connection = connect(path, Options(autocheckpoint=0))
    ballast = mount / "ballast"
    ballast.write_bytes(b"x" * 400_000)
    full = False
    kept = 0
    while not full:
        try:
            connection.insert(INSERT, (b"x" * 5000,))
            kept += 1
        except StoreFull:
            full = True
    with pytest.raises(StoreFull):
        write_private(profile.directory / "other", b"x" * 500_000)
    assert not list(profile.directory.glob(".other.*"))
    ballast.unlink()
    connection.insert(INSERT, (b"room again",))
    assert kept > 0
    assert connection.one("SELECT count(*) FROM note") == (kept + 1,)
    connection.close()


def test_a_disk_that_really_becomes_read_only(mount: Path) -> None:
    profile = open_profile(mount, "default")
    path = profile.directory / "notes.db"
    prepare(path, SCHEMA, profile)
    subprocess.run(["mount", "-o", "remount,ro", str(mount)], check=True)
    with pytest.raises(StoreReadOnly):
        connect(path, Options()).insert(INSERT, (b"no",))
    with pytest.raises(StoreReadOnly):
        open_profile(mount, "another")
    assert not wal_path(path).exists()


def test_a_damaged_full_text_index_is_corrupt_not_a_bug(store: Path) -> None:
    connection = connect(store, Options())
    connection.run("CREATE VIRTUAL TABLE words USING fts5 (body)")
    connection.run("UPDATE words_config SET v = 0 WHERE k = 'version'")
    connection.close()
    connection = connect(store, Options())
    with pytest.raises(StoreCorrupt):
        connection.all("SELECT body FROM words WHERE words MATCH 'zebra'")
    connection.close()
