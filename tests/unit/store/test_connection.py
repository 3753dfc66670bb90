from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import apsw
import pytest

from memoryd.errors import ClosedError, DeadlineExceeded, StoreBroken, StoreError, StoreLocked, StoreReadOnly
from memoryd.store import Connection, Options, Schema, connect, open_profile, prepare, wal_path, wal_size

INSERT = "INSERT INTO note (text) VALUES (?)"
COUNT = "SELECT count(*) FROM note"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            Options(),
            {"synchronous": 1, "busy_timeout": 2000, "wal_autocheckpoint": 1000, "journal_size_limit": 8 << 20, "cache_size": -8192, "query_only": 0},
        ),
        (
            Options(synchronous="FULL", busy_ms=5, autocheckpoint=0, wal_limit=4096, cache_kib=64, readonly=True),
            {"synchronous": 2, "busy_timeout": 5, "wal_autocheckpoint": 0, "journal_size_limit": 4096, "cache_size": -64, "query_only": 1},
        ),
    ],
)
def test_every_pragma_is_what_was_asked(store: Path, options: Options, expected: dict[str, int]) -> None:
    connection = connect(store, options)
    always = {"journal_mode": "wal", "temp_store": 2, "mmap_size": 0, "secure_delete": 1, "foreign_keys": 0, "trusted_schema": 0}
    for name, value in (always | expected).items():
        assert connection.raw.pragma(name) == value, name
    connection.close()


def test_an_insert_gives_its_rowid_and_a_statement_its_changes(connection: Connection) -> None:
    assert [connection.insert(INSERT, (b"a",)), connection.insert(INSERT, (b"b",))] == [1, 2]
    assert connection.last_rowid == 2
    assert connection.run("UPDATE note SET text = x'00'") == 2
    assert connection.run("INSERT OR IGNORE INTO note (id, text) VALUES (1, NULL)") == 0


def test_rows_come_one_by_one_all_at_once_or_alone(connection: Connection) -> None:
    connection.executemany(INSERT, [(b"%d" % n,) for n in range(3)])
    rows = [(1, b"0"), (2, b"1"), (3, b"2")]
    assert list(connection.execute("SELECT id, text FROM note ORDER BY id")) == rows
    assert connection.all("SELECT id, text FROM note ORDER BY id") == rows
    assert connection.one("SELECT id, text FROM note WHERE id = :id", {"id": 2}) == rows[1]
    assert connection.one("SELECT id FROM note WHERE id = 9") is None


def _insert_and_fail(connection: Connection) -> None:
    with connection.transaction():
        connection.insert(INSERT, (b"gone",))
        raise KeyError


def test_a_transaction_commits_or_leaves_nothing(connection: Connection) -> None:
    with connection.transaction():
        connection.insert(INSERT, (b"kept",))
        assert connection.in_transaction
    with pytest.raises(KeyError):
        _insert_and_fail(connection)
    assert not connection.in_transaction
    assert connection.all("SELECT text FROM note") == [(b"kept",)]


def test_a_transaction_that_sqlite_rolled_back_itself_tells_the_first_error(connection: Connection) -> None:
    connection.insert(INSERT, (b"first",))
    with pytest.raises(apsw.ConstraintError), connection.transaction():
        connection.run("INSERT OR ROLLBACK INTO note (id, text) VALUES (1, NULL)")
    assert not connection.in_transaction
    with connection.transaction():
        connection.insert(INSERT, (b"second",))


def test_a_deferred_transaction_sees_one_moment(connection: Connection, store: Path) -> None:
    reader = connect(store, Options(readonly=True))
    with reader.transaction("DEFERRED"):
        before = reader.one(COUNT)
        connection.insert(INSERT, (b"later",))
        assert reader.one(COUNT) == before == (0,)
    assert reader.one(COUNT) == (1,)
    reader.close()


def test_a_lock_held_elsewhere_is_named_and_passes(connection: Connection, store: Path) -> None:
    holder = connect(store, Options())
    connection.set_busy_ms(1)
    with holder.transaction():
        with pytest.raises(StoreLocked, match="locked by another process") as caught:
            connection.insert(INSERT, (b"held",))
        with pytest.raises(StoreLocked), connection.transaction():
            pytest.fail("the transaction must not begin")
    assert caught.value.path == str(store)
    assert isinstance(caught.value.__cause__, apsw.BusyError)
    assert connection.insert(INSERT, (b"now",)) == 1
    holder.close()


def _turn_writer(reader: Connection, writer: Connection) -> None:
    with reader.transaction("DEFERRED"):
        assert reader.one(COUNT) == (0,)
        writer.insert(INSERT, (b"between",))
        reader.insert(INSERT, (b"on an old snapshot",))


def test_a_busy_reader_that_turns_writer_is_rolled_back(connection: Connection, store: Path) -> None:
    other = connect(store, Options(busy_ms=1))
    with pytest.raises(StoreLocked):
        _turn_writer(other, connection)
    assert not other.in_transaction
    assert other.one(COUNT) == (1,)
    other.close()


def test_a_reader_cannot_write(store: Path) -> None:
    reader = connect(store, Options(readonly=True))
    with pytest.raises(StoreReadOnly):
        reader.insert(INSERT, (b"no",))
    reader.close()


def test_a_statement_is_stopped_at_its_deadline(connection: Connection) -> None:
    with pytest.raises(DeadlineExceeded), connection.progress(time.monotonic() + 0.02):
        connection.one(ENDLESS)
    with pytest.raises(DeadlineExceeded, match="before the work began"), connection.progress(time.monotonic() - 1):
        pytest.fail("the block must not begin")
    with connection.progress(None):
        assert connection.one(COUNT) == (0,)


def test_the_earlier_of_two_deadlines_wins(connection: Connection) -> None:
    soon, late = time.monotonic() + 0.02, time.monotonic() + 3600
    with pytest.raises(DeadlineExceeded), connection.progress(soon), connection.progress(late):
        connection.one(ENDLESS)
    with pytest.raises(DeadlineExceeded), connection.progress(late), connection.progress(soon):
        connection.one(ENDLESS)
    with connection.progress(late):
        with connection.progress(late):
            pass
        assert connection.one(COUNT) == (0,)


def _insert_for_ever(connection: Connection) -> None:
    with connection.transaction():
        connection.insert(INSERT, (b"half",))
        connection.run("INSERT INTO note (text) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n")


def test_a_deadline_inside_a_transaction_leaves_nothing(connection: Connection) -> None:
    with pytest.raises(DeadlineExceeded), connection.progress(time.monotonic() + 0.05):
        _insert_for_ever(connection)
    assert not connection.in_transaction
    assert connection.one(COUNT) == (0,)


def test_rows_taken_late_are_stopped_too(connection: Connection) -> None:
    with connection.progress(time.monotonic() + 0.02):
        rows = connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i = 1 OR i < 0"
        )
        assert next(rows) == (1,)
        with pytest.raises(DeadlineExceeded):
            next(rows)


def test_checkpoints_move_the_log(connection: Connection, store: Path) -> None:
    connection.executemany(INSERT, [(b"x" * 5000,)] * 20)
    assert wal_size(store) == os.stat(wal_path(store)).st_size > 100_000
    pages, moved = connection.checkpoint("PASSIVE")
    assert pages == moved > 20
    connection.checkpoint("TRUNCATE")
    assert wal_size(store) == 0
    assert wal_size(store.with_name("none.db")) == 0


def test_a_pinning_reader_keeps_truncate_but_not_passive(connection: Connection, store: Path) -> None:
    reader = connect(store, Options(readonly=True))
    with reader.transaction("DEFERRED"):
        assert reader.one(COUNT) == (0,)
        connection.insert(INSERT, (b"behind the reader",))
        pages, moved = connection.checkpoint("PASSIVE")
        assert moved < pages
        connection.set_busy_ms(1)
        with pytest.raises(StoreLocked):
            connection.checkpoint("TRUNCATE")
    connection.checkpoint("TRUNCATE")
    reader.close()


def test_a_closed_connection_says_so(connection: Connection) -> None:
    connection.close()
    connection.close()
    with pytest.raises(ClosedError):
        connection.insert(INSERT, (b"late",))
    with pytest.raises(ClosedError):
        connection.checkpoint()


@pytest.mark.parametrize("what", ["missing file", "missing directory", "directory in the way"])
def test_a_file_that_cannot_be_opened_is_named(store: Path, what: str) -> None:
    path = {
        "missing file": store.with_name("none.db"),
        "missing directory": store.parent / "none" / "notes.db",
        "directory in the way": store.parent,
    }[what]
    with pytest.raises(StoreError) as caught:
        connect(path, Options())
    assert str(path) in str(caught.value)
    assert caught.value.path == str(path)
    assert "\n" not in str(caught.value)


def test_a_path_of_any_characters_works(tmp_path: Path) -> None:
    strange = open_profile(tmp_path / "My Döcs & 'x' $HOME (1)?a=b#c%41", "default")
    path = strange.directory / "notes.db"
    prepare(path, Schema("notes", ("CREATE TABLE note (id INTEGER PRIMARY KEY, text BLOB)",)), strange)
    connection = connect(path, Options())
    assert connection.insert(INSERT, (b"here",)) == 1
    connection.close()
    assert path.exists()


def test_a_bug_of_ours_stays_a_bug(connection: Connection) -> None:
    with pytest.raises(apsw.SQLError):
        connection.run("INSERT INTO nowhere VALUES (1)")
    with pytest.raises(apsw.BindingsError):
        connection.all("SELECT ?", ())


def test_the_last_error_does_not_hide_in_a_pragma(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memoryd.store import _pragmas

    monkeypatch.setitem(_pragmas.LEVELS, "NORMAL", 7)
    with pytest.raises(StoreBroken, match="SQLite keeps synchronous at 1 instead of 7"):
        connect(store, Options())


def test_a_connection_may_wander_between_threads(connection: Connection) -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(connection.insert(INSERT, (b"t",))))
    thread.start()
    thread.join()
    assert found == [1]
    assert connection.one(COUNT) == (1,)
