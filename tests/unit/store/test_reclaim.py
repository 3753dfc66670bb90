"""After a large deletion the disk gets its space back, and a write-ahead log comes back under its cap when its reader is gone."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from memoryd.store import Options, ProfileStore, Schema, connect, fold_back, open_profile, prepare, reclaim, wal_size

NOTES = Schema("notes", ("CREATE TABLE note (id INTEGER PRIMARY KEY, text BLOB NOT NULL)",))


@pytest.fixture
def profile(tmp_path: Path) -> ProfileStore:
    return open_profile(tmp_path, "default")


@pytest.fixture
def store(profile: ProfileStore) -> Path:
    path = profile.directory / "notes.db"
    prepare(path, NOTES, profile)
    return path


def fill(path: Path, rows: int) -> None:
    connection = connect(path, Options())
    with connection.transaction():
        connection.executemany("INSERT INTO note (text) VALUES (?)", [(bytes(1000),) for _ in range(rows)])
    connection.close()


def test_most_of_it_deleted_is_given_back_in_short_steps(store: Path) -> None:
    fill(store, 8000)
    large = store.stat().st_size
    connection = connect(store, Options())
    connection.run("DELETE FROM note WHERE id % 10 > 0 OR id < 7000")
    assert store.stat().st_size == large
    first = reclaim(store, 2)
    assert first.pages == 128, "no more than it may"
    assert reclaim(store, 1000).free <= 256
    assert store.stat().st_size < large / 4
    assert connection.all("PRAGMA integrity_check") == [("ok",)]
    assert reclaim(store, 1000).pages == 0
    connection.close()


def test_a_lock_ends_it(store: Path) -> None:
    fill(store, 8000)
    connection = connect(store, Options())
    connection.run("DELETE FROM note")
    with connection.transaction("IMMEDIATE"):
        assert reclaim(store, 10).pages == 0
    assert reclaim(store, 10).pages == 640
    connection.close()


def test_a_file_of_before_gives_nothing_back_and_says_nothing(profile: ProfileStore) -> None:
    path = profile.directory / "notes.db"
    old = apsw.Connection(str(path))
    old.pragma("journal_mode", "wal")
    old.pragma("auto_vacuum", 0)
    old.close()
    prepare(path, NOTES, profile)
    fill(path, 8000)
    connection = connect(path, Options())
    connection.run("DELETE FROM note")
    assert reclaim(path, 10).pages == 0
    connection.close()


def test_a_log_that_a_reader_has_pinned_shrinks_when_it_is_gone(store: Path) -> None:
    reader = connect(store, Options(readonly=True))
    writer = connect(store, Options(autocheckpoint=0))
    rows = reader.execute("SELECT 1 UNION ALL SELECT count(*) FROM note")
    next(rows)
    with writer.transaction():
        writer.executemany("INSERT INTO note (text) VALUES (?)", [(bytes(1000),) for _ in range(8000)])
    assert wal_size(store) > 4 << 20
    assert not fold_back(store, 1 << 20)
    assert list(rows) == [(0,)]
    assert fold_back(store, 1 << 20)
    assert wal_size(store) == 0
    assert fold_back(store, 1 << 20)
    writer.close()
    reader.close()
