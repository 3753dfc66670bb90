from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from memoryd.errors import BarrierFailed, StoreBroken
from memoryd.store import (
    Connection,
    Options,
    WalBarrier,
    connect,
    free_bytes,
    fsync_directory,
    private_directory,
    wal_path,
    write_private,
)
from memoryd.testing import Fault, FaultyVFS

INSERT = "INSERT INTO note (text) VALUES (?)"


class Synced:
    """A sync that notes which inode it was given."""

    def __init__(self) -> None:
        self.inodes: list[int] = []

    def __call__(self, fd: int) -> None:
        self.inodes.append(os.fstat(fd).st_ino)
        os.fsync(fd)


def test_a_barrier_syncs_the_log_through_one_descriptor(connection: Connection) -> None:
    synced = Synced()
    barrier = WalBarrier(connection.path, synced)
    for n in range(3):
        connection.insert(INSERT, (b"%d" % n,))
        barrier.sync()
    assert synced.inodes == [wal_path(connection.path).stat().st_ino] * 3
    barrier.close()


def test_without_a_log_there_is_nothing_to_sync(store: Path) -> None:
    synced = Synced()
    WalBarrier(store, synced).sync()
    assert synced.inodes == []


def test_a_log_made_anew_is_opened_anew_and_its_name_synced(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directories: list[int] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            directories.append(fd)
        real(fd)

    monkeypatch.setattr("memoryd.store._sync.file_sync", fsync)
    synced = Synced()
    barrier = WalBarrier(store, synced)
    expected = []
    for n in range(3):
        connection = connect(store, Options(autocheckpoint=0))
        connection.insert(INSERT, (b"%d" % n,))
        os.link(wal_path(store), store.with_name(f"keep{n}"))  # so that the next log cannot get the same inode
        barrier.sync()
        barrier.sync()
        expected += [wal_path(store).stat().st_ino] * 2
        connection.close()
        barrier.close()
        barrier.sync()  # the last connection removed the log: nothing to do
    assert synced.inodes == expected
    assert len(set(expected)) == 3
    assert len(directories) == 3
    barrier.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_log_lost_under_an_open_connection_is_loud_for_good(store: Path, replaced: bool) -> None:
    connection = connect(store, Options(autocheckpoint=0))
    barrier = WalBarrier(store)
    connection.insert(INSERT, (b"x",))
    barrier.sync()
    os.rename(wal_path(store), store.with_name("taken away"))
    if replaced:
        wal_path(store).write_bytes(store.with_name("taken away").read_bytes())
    connection.insert(INSERT, (b"y",))
    for _ in range(2):
        with pytest.raises(BarrierFailed, match="removed or replaced while in use"):
            barrier.sync()
        barrier.recovered()
        assert barrier.failed
    barrier.close()
    assert not barrier.failed
    connection.close()


def test_the_barrier_leaves_sqlite_its_locks(store: Path, connection: Connection) -> None:
    other = connect(store, Options(busy_ms=1))
    barrier = WalBarrier(store)
    with connection.transaction():
        connection.insert(INSERT, (b"x",))
        barrier.sync()
        barrier.close()
        with pytest.raises(Exception, match="locked"):
            other.insert(INSERT, (b"y",))
    other.close()


def test_a_failed_barrier_stays_failed_until_a_checkpoint(store: Path, connection: Connection, disk: FaultyVFS) -> None:
    barrier = WalBarrier(store, disk.fdatasync)
    connection.insert(INSERT, (b"x",))
    barrier.sync()
    disk.arm(Fault("sync", "EIO"))
    with pytest.raises(BarrierFailed, match="notes.db-wal could not be synced") as caught:
        barrier.sync()
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.EIO
    assert caught.value.path == str(store)
    assert barrier.failed
    with pytest.raises(BarrierFailed, match="no checkpoint has succeeded"):
        barrier.sync()
    assert disk.count("sync", "wal") == 1
    connection.checkpoint("TRUNCATE")
    barrier.recovered()
    connection.insert(INSERT, (b"y",))
    barrier.sync()
    assert not barrier.failed
    barrier.close()


def test_a_directory_is_made_with_its_parents_and_private(tmp_path: Path) -> None:
    private_directory(tmp_path / "a" / "b" / "c")
    assert all((tmp_path / p).stat().st_mode & 0o777 == 0o700 for p in ("a", "a/b", "a/b/c"))
    private_directory(tmp_path / "a" / "b" / "c")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreBroken, match="not a directory"):
        private_directory(tmp_path / "file")


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_private(path, b"one")
    write_private(path, b"two")
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    write_private(path, b"one")

    def refuse(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("memoryd.store._sync.file_sync", refuse)
    with pytest.raises(StoreBroken):
        write_private(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_free_space_is_told_for_a_path_to_come(tmp_path: Path) -> None:
    found = os.statvfs(tmp_path)
    assert 0 < free_bytes(tmp_path / "not" / "yet") <= found.f_blocks * found.f_frsize


def test_a_directory_that_is_gone_is_typed(tmp_path: Path) -> None:
    with pytest.raises(StoreBroken):
        fsync_directory(tmp_path / "none")
