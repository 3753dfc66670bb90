"""A fork after open: the child's use is refused or reopens, the parent's memory stays whole, nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import memoryd
from memoryd.blocking import Memory
from memoryd.store import Options, connect, open_profile

# Python 3.12 and newer warn of a fork beside threads; here that is what is done, and on purpose.
OPEN = """
import atexit, gc, os, sys, threading, time, warnings
import memoryd
from memoryd.blocking import Memory
from memoryd.errors import ForkedError
if sys.version_info >= (3, 12):
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
home, fork = sys.argv[1:3]
memory = Memory(home, fork=fork, config={"logging": {"level": "off"}})

def say(count, session):
    with memoryd.scope(user="ada", session=session):
        for n in range(count):
            memory.sync_turn(f"zebra {session} {n}", "ok")

def wait(*pids):
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert codes == [0] * len(pids), codes

say(10, "parent")
"""


def texts_in(home: Path) -> list[str]:
    """What is recalled, repeats included; the stores are checked page by page, too."""
    with Memory(home) as memory, memoryd.scope(user="ada"):
        assert memory.catch_up(30) == 0
        found = sorted(hit.text for hit in memory.recall("zebra", 1000) for _ in range(hit.copies))
        assert memory.status().backends[0].rows["turns"] == len(found)
    for store in ("log.db", "memory.db"):
        connection = connect(open_profile(home, "default").directory / store, Options())
        assert connection.all("PRAGMA integrity_check") == [("ok",)]
        connection.close()
    return found


def said(**sessions: int) -> list[str]:
    return sorted(f"zebra {session} {n}" for session, count in sessions.items() for n in range(count))


REFUSED = f"""{OPEN}
pid = os.fork()
if pid == 0:
    calls = [
        lambda: memory.sync_turn("zebra", "ok"), lambda: memory.recall("zebra"), lambda: memory.store("k", "v"),
        lambda: memory.queue_prefetch("zebra"), lambda: memory.status(), lambda: memory.flush(), lambda: memory.drain(),
        lambda: memory.dead_letters(), lambda: memory.mark_session("end"), lambda: memory.checkpoint([]),
    ]
    for call in calls:
        with memoryd.scope(user="ada", session="s1"):
            try:
                call()
            except ForkedError as error:
                assert 'fork="reopen"' in str(error)
            else:
                raise AssertionError("not refused")
    memory.close()
    del memory
    gc.collect()
    sys.exit()  # the whole end of an interpreter, atexit and destructors
wait(pid)
say(10, "after")
"""


def test_a_childs_use_is_refused_and_harms_nothing(tmp_path: Path, run_script: Any) -> None:
    done = run_script(REFUSED, tmp_path / "home", "raise")
    assert (done.stdout, done.stderr) == ("", "")
    assert texts_in(tmp_path / "home") == said(parent=10, after=10)


REOPENED = f"""{OPEN}
pid = os.fork()
if pid == 0:
    threads = [threading.Thread(target=say, args=(5, f"child{{n}}")) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with memoryd.scope(user="ada"):
        assert len(memory.recall("zebra parent", 100)) >= 10
    assert sum(thread.name == "memoryd:loop" for thread in threading.enumerate()) == 1
    grandchild = os.fork()
    if grandchild == 0:
        say(5, "grandchild")
        sys.exit()
    wait(grandchild)
    sys.exit()
say(10, "meanwhile")
wait(pid)
say(10, "after")
"""


def test_a_child_opens_its_own(tmp_path: Path, run_script: Any) -> None:
    done = run_script(REOPENED, tmp_path / "home", "reopen")
    assert (done.stdout, done.stderr) == ("", "")
    children = {f"child{n}": 5 for n in range(8)}
    assert texts_in(tmp_path / "home") == said(parent=10, meanwhile=10, after=10, grandchild=5, **children)


PREFORK = f"""{OPEN}
workers = []
for number in range(4):
    pid = os.fork()
    if pid == 0:
        say(25, f"worker{{number}}")
        sys.exit()
    workers.append(pid)
wait(*workers)
"""


def test_a_prefork_server_loses_and_doubles_nothing(tmp_path: Path, run_script: Any) -> None:
    run_script(PREFORK, tmp_path / "home", "reopen")
    assert texts_in(tmp_path / "home") == said(parent=10, worker0=25, worker1=25, worker2=25, worker3=25)


MULTIPROCESSING = f"""
import multiprocessing
{OPEN}
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=say, args=(25, f"worker{{n}}")) for n in range(3)]
    for worker in workers:
        worker.start()
    say(10, "meanwhile")
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
"""


def test_workers_of_multiprocessing(tmp_path: Path, run_script: Any) -> None:
    run_script(MULTIPROCESSING, tmp_path / "home", "reopen")
    assert texts_in(tmp_path / "home") == said(parent=10, meanwhile=10, worker0=25, worker1=25, worker2=25)


OUTLIVED = f"""{OPEN}
memory.drain()
closed, go = os.pipe()
opened, ready = os.pipe()
pid = os.fork()
if pid == 0:
    say(10, "before")
    os.write(ready, b"x")
    os.read(closed, 1)
    say(10, "after")
    os._exit(0)  # no close, no flush: as if killed
os.read(opened, 1)
memory.close()
os.write(go, b"x")
wait(pid)
"""


def test_a_child_keeps_its_log_when_the_parent_closes(tmp_path: Path, run_script: Any) -> None:
    run_script(OUTLIVED, tmp_path / "home", "reopen")
    assert texts_in(tmp_path / "home") == said(parent=10, before=10, after=10)


FLUSHES = f"""{OPEN}
from memoryd.runtime import Runtime
def told(self, flush=Runtime.last_flush):
    print("flush", "parent" if os.getpid() == parent else "child", flush=True)
    flush(self)
Runtime.last_flush = told
parent = os.getpid()
pid = os.fork()
if pid == 0:
    if fork == "reopen":
        say(5, "child")
    sys.exit()
wait(pid)
"""


@pytest.mark.parametrize(("fork", "flushes"), [("raise", ["flush parent"]), ("reopen", ["flush child", "flush parent"])])
def test_each_process_flushes_its_own_at_exit(tmp_path: Path, run_script: Any, fork: str, flushes: list[str]) -> None:
    done = run_script(FLUSHES, tmp_path / "home", fork)
    assert done.stdout.splitlines() == flushes


BUSY = f"""{OPEN}
stop = False
def busy(session):
    n = 0
    while not stop:
        with memoryd.scope(user="ada", session=session):
            memory.sync_turn(f"busy {{n}}", "ok")
            memory.recall("busy")
        n += 1
threads = [threading.Thread(target=busy, args=(f"s{{n}}",)) for n in range(4)]
for thread in threads:
    thread.start()
for round in range(8):
    pid = os.fork()
    if pid == 0:
        if fork == "reopen":
            say(2, f"child{{round}}")
        sys.exit()
    wait(pid)
stop = True
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize(("fork", "own"), [("raise", 0), ("reopen", 2)])
def test_a_fork_at_any_moment_of_other_threads(tmp_path: Path, run_script: Any, fork: str, own: int) -> None:
    run_script(BUSY, tmp_path / "home", fork)
    with Memory(tmp_path / "home") as memory, memoryd.scope(user="ada"):
        assert memory.catch_up(30) == 0
        found = sorted(hit.text for hit in memory.recall("zebra", 1000) for _ in range(hit.copies))
    assert found == said(parent=10, **({f"child{n}": own for n in range(8)} if own else {}))
