"""A forked child never uses, and never closes, what it inherited."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.store import Options, ProfileStore, connect

SCRIPT = """
import gc, os, sys, threading, warnings
from pathlib import Path
from memoryd.errors import ForkedError
from memoryd.store import Options, WalBarrier, Worker, connect
warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads is what this is about
path = Path(sys.argv[1])
connection = connect(path, Options(autocheckpoint=0, cache_kib=40))
barrier, worker = WalBarrier(path), Worker("notes")
connection.insert("INSERT INTO note (text) VALUES (x'01')")
barrier.sync()
rows = connection.execute("SELECT id FROM note UNION ALL SELECT 5")
next(rows)

def refused(use):
    try:
        use()
    except ForkedError as error:
        return 'fork="reopen"' in str(error)
    return False

def child():
    uses = [
        lambda: connection.insert("INSERT INTO note (text) VALUES (x'02')"),
        lambda: connection.run("DELETE FROM note"),
        lambda: connection.execute("SELECT 1"),
        lambda: connection.executemany("DELETE FROM note WHERE id = ?", [(1,)]),
        lambda: connection.all("SELECT 1"),
        lambda: connection.one("SELECT 1"),
        lambda: connection.checkpoint("TRUNCATE"),
        lambda: connection.set_busy_ms(1),
        lambda: connection.transaction().__enter__(),
        lambda: connection.progress(1e9).__enter__(),
        lambda: worker.call(len, ()),
        barrier.sync,
    ]
    bad = [n for n, use in enumerate(uses) if not refused(use)]
    connection.close()
    worker.close()
    barrier.close()
    assert not bad, bad

with_transaction = sys.argv[2] == "inside"
if with_transaction:
    rows = None
    connection.run("BEGIN IMMEDIATE")
    for n in range(200):  # more than the cache: pages are in the log already, known by the shared index only
        connection.insert("INSERT INTO note (text) VALUES (randomblob(3000))")
pid = os.fork()
if pid == 0:
    child()
    del connection, rows
    gc.collect()
    sys.exit(0)  # the whole shutdown of the interpreter, with every destructor
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 0
assert Path(f"{path}-wal").stat().st_size > 0, "the child has moved or removed the log"
if with_transaction:
    connection.run("COMMIT")
for n in range(50):
    connection.insert("INSERT INTO note (text) VALUES (?)", (b"x" * n * 100,))
barrier.sync()
assert connection.all("PRAGMA integrity_check") == [("ok",)]
print(connection.one("SELECT count(*) FROM note")[0])
"""


@pytest.mark.parametrize(("where", "expected"), [("outside", 51), ("inside", 251)])
def test_a_child_that_exits_normally_harms_nothing(store: Path, where: str, expected: int) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(store), where], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(expected)
    connection = connect(store, Options())
    assert connection.one("SELECT count(*) FROM note") == (expected,)
    assert connection.all("PRAGMA integrity_check") == [("ok",)]
    connection.close()


REOPEN = """
import multiprocessing, sys, warnings
from pathlib import Path
from memoryd.store import Options, connect
warnings.simplefilter("ignore", DeprecationWarning)
path = Path(sys.argv[1])

def work(n):
    own = connect(path, Options())
    for _ in range(20):
        own.insert("INSERT INTO note (text) VALUES (?)", (b"%d" % n,))
    own.close()

if __name__ == "__main__":
    inherited = connect(path, Options())
    inherited.insert("INSERT INTO note (text) VALUES (x'00')")
    children = [multiprocessing.get_context("fork").Process(target=work, args=(n,)) for n in range(3)]
    for c in children: c.start()
    for _ in range(20):
        inherited.insert("INSERT INTO note (text) VALUES (x'00')")
    for c in children: c.join()
    assert [c.exitcode for c in children] == [0, 0, 0]
    assert inherited.all("PRAGMA integrity_check") == [("ok",)]
    print(inherited.one("SELECT count(*) FROM note")[0])
"""


def test_children_with_connections_of_their_own_lose_nothing(store: Path, profile: ProfileStore, tmp_path: Path) -> None:
    script = tmp_path / "reopen.py"
    script.write_text(REOPEN)
    done = subprocess.run([sys.executable, str(script), str(store)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "81"


RESTED = """
import os, sys, threading, time, warnings
from pathlib import Path
from memoryd.errors import ForkedError
from memoryd.store import Options, WalBarrier, connect
warnings.simplefilter("ignore", DeprecationWarning)
path, how = Path(sys.argv[1]), sys.argv[2]
connection, barrier = connect(path, Options(autocheckpoint=0)), WalBarrier(path)
connection.insert("INSERT INTO note (text) VALUES (x'01')")
barrier.sync()

def write():
    with connection.transaction():
        for n in range(100):
            connection.insert("INSERT INTO note (text) VALUES (x'02')")
            began.set()
            if how == "long":
                ended.wait(0.05)

def child():
    if how == "long":  # forked in the middle of what does not end: refused, rather than hang or be wrong
        try:
            connect(path, Options())
        except ForkedError as error:
            os._exit(0 if "in the middle" in str(error) else 1)
        os._exit(2)
    own = connect(path, Options())
    own.insert("INSERT INTO note (text) VALUES (x'03')")
    os._exit(0)  # not closed

began, ended = threading.Event(), threading.Event()
thread = threading.Thread(target=write)
thread.start()
began.wait()
pid = os.fork()
if pid == 0:
    child()
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
ended.set()
thread.join()
connection.insert("INSERT INTO note (text) VALUES (x'04')")
barrier.sync()
"""


@pytest.mark.parametrize(("how", "expected"), [("short", 103), ("long", 102)])
def test_a_fork_waits_for_the_end_of_a_transaction(store: Path, how: str, expected: int) -> None:
    done = subprocess.run([sys.executable, "-c", RESTED, str(store), how], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    connection = connect(store, Options())
    assert connection.one("SELECT count(*) FROM note") == (expected,)
    assert connection.all("PRAGMA integrity_check") == [("ok",)]
    connection.close()
