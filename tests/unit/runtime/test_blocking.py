"""The door of threads."""

from __future__ import annotations

import contextvars
import gc
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import memoryd
from memoryd.blocking import Memory
from memoryd.errors import ClosedError, ConfigError, MemorydError, ScopeMissing, StoreTooNew
from memoryd.runtime import Portal
from memoryd.store import Options, connect, open_profile
from memoryd.testing import FakeRemote, RemoteFault, registered

QUIET = {"logging": {"level": "off"}}


def loops() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "memoryd:loop"]


@contextmanager
def locked(home: Path, store: str) -> Iterator[None]:
    other = connect(open_profile(home, "default").directory / store, Options())
    with other.transaction("IMMEDIATE"):
        yield
    other.close()


# -- threads and their contexts ----------------------------------------------------------------------------------------------------


def test_64_threads_at_once_each_in_its_own_scope(tmp_path: Path) -> None:
    start = threading.Barrier(64)

    def work(number: int) -> bool:
        start.wait()
        with memoryd.scope(user=f"user {number}", session="s1"):
            memory.sync_turn(f"zebra {number}", "ok")
            memory.store("number", str(number))
            own = memory.retrieve("number")
            return own is not None and own.value == str(number) and [hit.text for hit in memory.recall("zebra")] == [f"zebra {number}"]

    with Memory(tmp_path) as memory, ThreadPoolExecutor(64) as pool:
        assert list(pool.map(work, range(64))) == [True] * 64


def test_a_thread_has_the_scope_of_its_context(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory, ThreadPoolExecutor(1) as pool:
        with memoryd.scope(user="ada", session="s1"):
            memory.sync_turn("zebra", "ok")
            with pytest.raises(ScopeMissing):
                pool.submit(memory.recall, "zebra").result()
            copied = contextvars.copy_context()
        assert len(pool.submit(copied.run, memory.recall, "zebra").result()) == 1


def test_a_block_inside_another_names_what_it_changes(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory, memoryd.scope(user="ada", session="s1"):
        memory.store("city", "Oslo")
        with memoryd.scope(user="bob"):
            assert memory.retrieve("city") is None
        assert memory.retrieve("city") is not None


# -- deadlines and interruptions ---------------------------------------------------------------------------------------------------


def test_a_call_ends_at_its_own_deadline(tmp_path: Path) -> None:
    config = {"deadlines": {"store": 0.1, "retrieve": 0.1, "close": 1.0}, **QUIET}
    with Memory(tmp_path, config=config) as memory, memoryd.scope(user="ada", session="s1"):
        memory.drain()
        with locked(tmp_path, "memory.db"):
            assert not memory.store("city", "Oslo").applied
            assert not memory.drain(0.1)


def test_a_typed_error_of_a_call_is_raised_in_its_thread(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory, memoryd.scope(user="ada", session="s1"):
        with pytest.raises(MemorydError) as caught:
            memory.restore("00" * 16)
        assert caught.traceback[0].path == Path(__file__)
        with pytest.raises(memoryd.errors.InvalidInput):
            memory.recall("zebra", limit=-1)


def test_an_interruption_leaves_a_call_and_cancels_it(tmp_path: Path) -> None:
    remote = FakeRemote(outage=RemoteFault("hang"))

    def press() -> None:
        main = threading.main_thread().ident or 0
        while not waits(main):
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    def waits(thread: int) -> bool:
        return sys._current_frames()[thread].f_code is Portal.run.__code__

    with registered("fake", lambda context: remote), memoryd.scope(user="ada", session="s1"):
        memory = Memory(tmp_path, config={"mirrors": ["fake"], **QUIET})
        memory.sync_turn("zebra", "ok")
        threading.Thread(target=press).start()
        with pytest.raises(KeyboardInterrupt):
            memory.drain(3600)
        assert len(memory.recall("zebra")) == 1
        memory.close()


# -- closing -----------------------------------------------------------------------------------------------------------------------


CALLS: dict[str, Callable[[Memory], Any]] = {
    "sync_turn": lambda memory: memory.sync_turn("zebra", "ok"),
    "queue_prefetch": lambda memory: memory.queue_prefetch("zebra"),
    "recall": lambda memory: memory.recall("zebra"),
    "store": lambda memory: memory.store("city", "Oslo"),
    "flush": lambda memory: memory.flush(),
    "checkpoint": lambda memory: memory.checkpoint([]),
    "status": lambda memory: memory.status(),
    "dead_letters": lambda memory: memory.dead_letters(),
}


@pytest.mark.parametrize("name", CALLS)
def test_use_after_close(tmp_path: Path, name: str) -> None:
    memory = Memory(tmp_path)
    memory.close()
    memory.close()
    with memoryd.scope(user="ada", session="s1"), pytest.raises(ClosedError):
        CALLS[name](memory)


def test_calls_that_run_while_it_closes_end(tmp_path: Path) -> None:
    remote = FakeRemote(outage=RemoteFault("hang"))
    with registered("fake", lambda context: remote), memoryd.scope(user="ada", session="s1"), ThreadPoolExecutor(8) as pool:
        memory = Memory(tmp_path, config={"mirrors": ["fake"], **QUIET})
        memory.sync_turn("zebra", "ok")
        calls = [pool.submit(contextvars.copy_context().run, memory.drain, 3600) for _ in range(8)]
        while not remote.opens:
            time.sleep(0.01)
        memory.close()
        for call in calls:
            with pytest.raises(ClosedError):
                call.result(60)


def test_many_threads_may_close(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: memory.close(), range(8))) == [None] * 8
    assert not loops()


def test_a_memory_that_nobody_has_any_more_is_closed(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    with memoryd.scope(user="ada", session="s1"):
        memory.sync_turn("zebra", "ok")
    [loop] = loops()
    gone = weakref.ref(memory)
    del memory
    gc.collect()
    assert gone() is None
    loop.join(60)
    assert not loop.is_alive()
    with Memory(tmp_path) as memory, memoryd.scope(user="ada"):
        assert len(memory.recall("zebra")) == 1


def test_a_call_keeps_a_memory_alive(tmp_path: Path) -> None:
    with memoryd.scope(user="ada", session="s1"):
        assert Memory(tmp_path).store("city", "Oslo").accepted.state == "journaled"


# -- opening -----------------------------------------------------------------------------------------------------------------------


def test_an_error_of_opening_is_raised_where_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        Memory(tmp_path, config={"no_such_key": 1})
    with pytest.raises(ConfigError, match="not installed"):
        Memory(tmp_path, config={"backend": "nowhere"})
    assert not loops()


@pytest.mark.parametrize("store", ["log.db", "memory.db"])
def test_a_newer_store_is_refused_where_it_is_opened(tmp_path: Path, store: str) -> None:
    Memory(tmp_path).close()
    connection = connect(open_profile(tmp_path, "default").directory / store, Options())
    connection.run("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreTooNew):
        Memory(tmp_path)
    assert not loops()


def test_two_memories_of_one_process_share_a_profile(tmp_path: Path) -> None:
    with Memory(tmp_path) as one, Memory(tmp_path) as two, memoryd.scope(user="ada", session="s1"):
        for n in range(20):
            one.sync_turn(f"zebra one {n}", "ok")
            two.sync_turn(f"zebra two {n}", "ok")
        one.store("city", "Oslo")
        assert two.catch_up(30) == one.catch_up(30) == 0
        city = two.retrieve("city")
        assert city is not None and city.value == "Oslo"
        assert len(one.recall("zebra", 100)) == len(two.recall("zebra", 100)) == 40
        one.close()
        two.sync_turn("zebra three", "ok")
        assert len(two.recall("zebra", 100)) == 41
