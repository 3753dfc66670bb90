from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from memoryd.errors import StoreLocked
from memoryd.store import Connection, Options, connect, lock_holder, lock_readers
from memoryd.testing import CrashChild

HOLD = """
import sys, time
from pathlib import Path
from memoryd.store import Options, connect
connection = connect(Path(sys.argv[1]), Options())
with connection.transaction():
    print("held", flush=True)
    time.sleep(60)
"""

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells who holds a lock")


@pytest.fixture
def holder(tmp_path: Path) -> Path:
    script = tmp_path / "hold.py"
    script.write_text(HOLD)
    return script


@on_linux
def test_the_holder_of_the_write_lock_is_named(store: Path, holder: Path) -> None:
    connection = connect(store, Options(busy_ms=5))
    assert lock_holder(store) is None
    with CrashChild([holder, store]) as child:
        child.wait_for(1)
        assert lock_holder(store) == child.pid
        with pytest.raises(StoreLocked, match=f"the write lock is held by process {child.pid}"):
            connection.insert("INSERT INTO note (text) VALUES (x'')")
    assert lock_holder(store) is None
    connection.insert("INSERT INTO note (text) VALUES (x'')")
    connection.close()


def test_a_stopped_holder_blocks_writers_not_readers_and_dies_clean(store: Path, holder: Path) -> None:
    connection = connect(store, Options(busy_ms=5))
    with CrashChild([holder, store]) as child:
        child.wait_for(1)
        child.stop()
        with pytest.raises(StoreLocked):
            connection.insert("INSERT INTO note (text) VALUES (x'')")
        assert connection.one("SELECT count(*) FROM note") == (0,)
        child.kill()
    assert connection.insert("INSERT INTO note (text) VALUES (x'')") == 1
    assert connection.all("PRAGMA integrity_check") == [("ok",)]
    connection.close()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("1: POSIX  ADVISORY  WRITE 77 fe:00:{inode} 120 120", 77),
        ("1: POSIX  ADVISORY  WRITE 77 fe:00:{inode} 0 EOF", 77),
        ("1: -> POSIX  ADVISORY  WRITE 77 fe:00:{inode} 120 120", None),
        ("1: POSIX  ADVISORY  READ 77 fe:00:{inode} 120 120", None),
        ("1: POSIX  ADVISORY  WRITE 77 fe:00:{inode} 128 128", None),
        ("1: POSIX  ADVISORY  WRITE 77 fe:00:1{inode} 120 120", None),
        ("1: POSIX  ADVISORY  WRITE -1 fe:00:{inode} 120 120", None),
        ("1: FLOCK  ADVISORY  WRITE 77 fe:00:{inode} 0 EOF", None),
        ("", None),
    ],
)
def test_lines_of_the_kernel_are_read_right(connection: Connection, tmp_path: Path, line: str, found: int | None) -> None:
    inode = os.stat(f"{connection.path}-shm").st_ino
    table = tmp_path / "locks"
    table.write_text(line.format(inode=inode) + "\n")
    assert lock_holder(connection.path, table) == found


def test_a_system_that_does_not_tell_is_fine(connection: Connection, tmp_path: Path) -> None:
    assert lock_holder(connection.path, tmp_path / "none") is None
    assert lock_holder(tmp_path / "none.db") is None


@on_linux
def test_those_who_read_are_named_while_they_do(store: Path, tmp_path: Path) -> None:
    script = tmp_path / "read.py"
    script.write_text(HOLD.replace("transaction():", 'transaction("DEFERRED"):\n    connection.all("SELECT count(*) FROM sqlite_master")'))
    connection = connect(store, Options(busy_ms=5))
    assert lock_readers(store) == ()
    with CrashChild([script, store]) as one, CrashChild([script, store]) as two:
        one.wait_for(1)
        two.wait_for(1)
        assert lock_readers(store) == tuple(sorted((one.pid, two.pid)))
        assert lock_holder(store) is None
    assert lock_readers(store) == ()
    assert lock_readers(store, tmp_path / "no-such-table") == ()
    connection.close()
