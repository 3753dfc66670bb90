from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from memoryd.errors import ProfileMismatch, StoreBroken, StoreCorrupt, StoreError, StoreFull, StoreTooNew
from memoryd.store import Connection, Options, ProfileStore, Schema, backup_path, connect, open_profile, prepare
from memoryd.store._migrate import APPLICATION_ID, require_sqlite
from memoryd.testing import Fault, FaultyVFS, Operation

V1 = "CREATE TABLE note (id INTEGER PRIMARY KEY, text BLOB)"
V2 = "ALTER TABLE note ADD COLUMN at INTEGER; UPDATE note SET at = 7; SELECT * FROM note; CREATE INDEX by_at ON note (at)"
V3 = "CREATE TABLE more (id INTEGER PRIMARY KEY)"
OLD, NEW = Schema("notes", (V1,)), Schema("notes", (V1, V2, V3))


def read(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = connect(path, Options())
    try:
        return connection.all(sql)
    finally:
        connection.close()


@pytest.fixture
def old(profile: ProfileStore) -> Path:
    """A file of version 1 with 200 rows."""
    path = profile.directory / "notes.db"
    prepare(path, OLD, profile)
    connection = connect(path, Options())
    with connection.transaction():
        connection.executemany("INSERT INTO note (text) VALUES (?)", [(b"x" * 500,)] * 200)
    connection.close()
    return path


def test_a_new_file_is_ours_and_of_today(profile: ProfileStore) -> None:
    path = profile.directory / "notes.db"
    prepare(path, NEW, profile)
    assert read(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert read(path, "PRAGMA user_version") == [(3,)]
    assert read(path, "SELECT kind, profile, instance FROM store_identity") == [("notes", b"default", profile.instance)]
    assert not backup_path(path, 0).exists()


def test_to_prepare_again_changes_nothing(old: Path, profile: ProfileStore) -> None:
    before = old.read_bytes()
    prepare(old, OLD, profile)
    assert old.read_bytes() == before


def test_an_older_file_is_backed_up_then_migrated(old: Path, profile: ProfileStore) -> None:
    prepare(old, NEW, profile)
    assert read(old, "SELECT count(*), min(at) FROM note") == [(200, 7)]
    assert read(old, "PRAGMA user_version") == [(3,)]
    backup = backup_path(old, 1)
    copy = apsw.Connection(str(backup), apsw.SQLITE_OPEN_READONLY)
    assert copy.pragma("user_version") == 1
    assert copy.pragma("journal_mode") == "delete"
    assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert copy.execute("SELECT count(*), max(length(text)) FROM note").fetchall() == [(200, 500)]
    copy.close()
    assert not list(old.parent.glob("*.draft*"))


def test_a_backup_restored_by_copying_it_back_works(old: Path, profile: ProfileStore) -> None:
    prepare(old, NEW, profile)
    shutil.copy(backup_path(old, 1), old)
    prepare(old, NEW, profile)
    assert read(old, "SELECT count(*), min(at) FROM note") == [(200, 7)]


def test_a_newer_file_is_refused_untouched(old: Path, profile: ProfileStore) -> None:
    prepare(old, NEW, profile)
    before = old.read_bytes()
    with pytest.raises(StoreTooNew, match="has version 3, this memoryd knows up to 1; upgrade memoryd"):
        prepare(old, OLD, profile)
    assert old.read_bytes() == before


def test_a_migration_that_fails_leaves_the_file_as_it_was(old: Path, profile: ProfileStore) -> None:
    broken = Schema("notes", (V1, V2, "INSERT INTO nowhere VALUES (1)"))
    with pytest.raises(apsw.SQLError):
        prepare(old, broken, profile)
    assert read(old, "PRAGMA user_version") == [(1,)]
    assert read(old, "SELECT * FROM note LIMIT 1") == [(1, b"x" * 500)]
    prepare(old, NEW, profile)


def test_a_damaged_file_is_not_migrated(old: Path, profile: ProfileStore) -> None:
    with old.open("r+b") as file:  # no connection is open
        file.seek(8 * 4096)
        file.write(os.urandom(8 * 4096))
    before = old.read_bytes()
    with pytest.raises(StoreCorrupt, match="nothing was changed"):
        prepare(old, NEW, profile)
    assert old.read_bytes() == before
    assert not backup_path(old, 1).exists()


def test_no_room_for_the_backup_means_no_migration(old: Path, profile: ProfileStore, disk: FaultyVFS) -> None:
    disk.arm(Fault("write", "ENOSPC", nth=5, file="db", lasting=True))
    with pytest.raises(StoreFull):
        prepare(old, NEW, profile, vfs=disk.name)
    disk.heal()
    assert read(old, "PRAGMA user_version") == [(1,)]
    assert not list(old.parent.glob("*.draft*"))
    prepare(old, NEW, profile, vfs=disk.name)


@pytest.mark.parametrize("operation", ["open", "read", "write", "sync", "truncate", "lock", "delete"])
def test_every_failing_step_of_a_migration_leaves_old_or_new(
    old: Path, profile: ProfileStore, disk: FaultyVFS, operation: Operation
) -> None:
    original = old.read_bytes()
    prepare(old, NEW, profile, vfs=disk.name)
    many = disk.count(operation)
    for nth in range(1, many + 1, max(1, many // 12)):
        for left in old.parent.glob("notes.db*"):
            left.unlink()
        old.write_bytes(original)
        disk.arm(Fault(operation, "EIO", nth))
        with suppress(StoreError):  # never another exception; it may also succeed
            prepare(old, NEW, profile, vfs=disk.name)
        disk.heal()
        assert read(old, "PRAGMA user_version") in ([(1,)], [(3,)])
        prepare(old, NEW, profile, vfs=disk.name)
        assert read(old, "SELECT count(*), min(at) FROM note") == [(200, 7)]
        assert read(old, "PRAGMA integrity_check") == [("ok",)]


MIGRATE = """
import sys
from contextlib import suppress
from pathlib import Path
from memoryd.store import Schema, open_profile, prepare
profile = open_profile(Path(sys.argv[1]), "default")
sys.stdin.read()
prepare(profile.directory / "notes.db", Schema("notes", tuple(sys.argv[2:])), profile)
"""


def test_processes_that_migrate_at_once_do_it_once(old: Path, profile: ProfileStore) -> None:
    home = profile.directory.parent.parent
    command = [sys.executable, "-c", MIGRATE, str(home), *NEW.migrations]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(4)]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.close()  # the start signal
    assert [racer.wait() for racer in racers] == [0] * 4
    assert read(old, "SELECT count(*), min(at) FROM note") == [(200, 7)]
    copy = apsw.Connection(str(backup_path(old, 1)), apsw.SQLITE_OPEN_READONLY)
    assert copy.pragma("user_version") == 1
    copy.close()


def test_a_file_of_another_profile_is_refused(old: Path, tmp_path: Path) -> None:
    other = open_profile(tmp_path / "home", "other")
    shutil.copy(old, other.directory / "notes.db")
    with pytest.raises(ProfileMismatch, match="another profile"):
        prepare(other.directory / "notes.db", OLD, other)


def test_a_file_of_another_instance_is_refused(old: Path, tmp_path: Path) -> None:
    twin = open_profile(tmp_path / "elsewhere", "default")
    shutil.copy(old, twin.directory / "notes.db")
    with pytest.raises(ProfileMismatch):
        prepare(twin.directory / "notes.db", OLD, twin)


def test_a_file_of_another_kind_is_refused(old: Path, profile: ProfileStore) -> None:
    with pytest.raises(StoreBroken, match="holds notes, not log"):
        prepare(old, Schema("log", (V1,)), profile)


def test_a_database_of_another_program_is_refused(profile: ProfileStore) -> None:
    path = profile.directory / "notes.db"
    foreign = apsw.Connection(str(path))
    foreign.execute("CREATE TABLE theirs (x)")
    foreign.close()
    with pytest.raises(StoreBroken, match="another program"):
        prepare(path, OLD, profile)
    assert read(path, "SELECT name FROM sqlite_schema") == [("theirs",)]


def test_an_open_reader_does_not_stop_a_migration(old: Path, profile: ProfileStore) -> None:
    reader: Connection = connect(old, Options(readonly=True))
    with reader.transaction("DEFERRED"):
        assert reader.one("SELECT count(*) FROM note") == (200,)
        prepare(old, NEW, profile)
        assert reader.one("PRAGMA user_version") == (1,)
    assert reader.one("SELECT min(at) FROM note") == (7,)
    reader.close()


@pytest.mark.parametrize("version", ["3.51.2", "3.40.1", "3.9.0"])
def test_an_unsafe_sqlite_is_refused(version: str) -> None:
    with pytest.raises(StoreBroken, match="install apsw 3.51.3 or newer"):
        require_sqlite(version)
    require_sqlite("3.51.3")
    require_sqlite("3.100.0")
