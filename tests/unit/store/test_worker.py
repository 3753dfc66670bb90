from __future__ import annotations

import contextvars
import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from memoryd.errors import ClosedError, DeadlineExceeded
from memoryd.store import Connection, Worker

who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker("test")
    yield made
    made.close()


async def started(event: threading.Event) -> None:
    """Wait for a thread's event without a clock."""
    await trio.to_thread.run_sync(event.wait, abandon_on_cancel=True)


async def test_calls_run_on_one_thread_of_their_own_in_order(worker: Worker) -> None:
    order: list[int] = []
    names: set[str] = set()

    def note(n: int) -> int:
        order.append(n)
        names.add(threading.current_thread().name)
        return n * 2

    assert [await worker.run(note, n) for n in range(5)] == [0, 2, 4, 6, 8]
    assert worker.call(note, 5) == 10
    assert order == [0, 1, 2, 3, 4, 5]
    assert names == {"memoryd:test"}


async def test_the_caller_s_context_goes_along(worker: Worker) -> None:
    who.set("me")
    assert await worker.run(who.get) == "me"
    await worker.run(who.set, "changed in a copy")
    assert who.get() == "me"
    assert worker.call(who.get) == "me"


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3), KeyboardInterrupt()])
async def test_whatever_is_raised_comes_back_and_the_thread_goes_on(worker: Worker, error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        await worker.run(fail)
    with pytest.raises(type(error)):
        worker.call(fail)
    assert await worker.run(len, "abc") == 3


async def test_a_call_that_runs_is_waited_for_when_cancelled(worker: Worker) -> None:
    begun, go = threading.Event(), threading.Event()
    done: list[str] = []

    def write() -> None:
        begun.set()
        go.wait()
        done.append("written")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run, write)
        await started(begun)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await trio.testing.wait_all_tasks_blocked()
            assert not done
            go.set()
    assert done == ["written"]


async def test_a_call_that_has_not_begun_is_withdrawn(worker: Worker) -> None:
    begun, go = threading.Event(), threading.Event()
    done: list[str] = []

    def block() -> None:
        begun.set()
        go.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run, block)
        await started(begun)
        async with trio.open_nursery() as inner:
            inner.start_soon(worker.run, done.append, "late")
            await trio.testing.wait_all_tasks_blocked()
            inner.cancel_scope.cancel()
        go.set()
    assert await worker.run(len, ()) == 0
    assert done == []


async def test_a_read_is_abandoned_at_once(worker: Worker) -> None:
    begun, go = threading.Event(), threading.Event()

    def read() -> None:
        begun.set()
        go.wait()

    async with trio.open_nursery() as nursery:

        async def reader() -> None:
            await worker.run(read, abandon=True)

        nursery.start_soon(reader)
        await started(begun)
        nursery.cancel_scope.cancel()
    assert not go.is_set()
    go.set()
    assert await worker.run(len, "ab") == 2


async def test_a_cancelled_caller_begins_nothing(worker: Worker) -> None:
    done: list[str] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        await worker.run(done.append, "never")
    assert scope.cancelled_caught
    assert await worker.run(len, done) == 0


def test_a_loop_that_ended_does_not_hurt_the_thread(worker: Worker) -> None:
    begun, go, over = threading.Event(), threading.Event(), threading.Event()

    def read() -> None:
        begun.set()
        go.wait()

    async def main() -> None:
        async with trio.open_nursery() as nursery:

            async def reader() -> None:
                await worker.run(read, abandon=True)

            nursery.start_soon(reader)
            await started(begun)
            nursery.cancel_scope.cancel()

    trio.run(main)
    over.set()
    go.set()
    assert worker.call(len, "abc") == 3


def test_a_deadline_of_a_plain_thread(worker: Worker) -> None:
    go, done = threading.Event(), threading.Event()

    def slow() -> None:
        go.wait()
        done.set()

    with pytest.raises(DeadlineExceeded, match="still runs"):
        worker.call(slow, timeout=0.01)
    never: list[int] = []
    with pytest.raises(DeadlineExceeded, match="did not begin"):
        worker.call(never.append, 1, timeout=0.01)
    go.set()
    assert worker.call(len, never) == 0
    assert done.is_set()


async def test_close_finishes_what_was_given_and_refuses_the_rest() -> None:
    worker = Worker("closing")
    done: list[int] = []
    go = threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run, lambda: go.wait())
        nursery.start_soon(worker.run, done.append, 1)
        await trio.testing.wait_all_tasks_blocked()
        assert not worker.close(timeout=0.01)
        with pytest.raises(ClosedError):
            await worker.run(done.append, 2)
        with pytest.raises(ClosedError):
            worker.call(done.append, 2)
        go.set()
    assert worker.close()
    assert worker.close()
    assert done == [1]


async def test_nothing_is_kept_alive_by_an_idle_worker(worker: Worker) -> None:
    class Big:
        pass

    def fail(_: object) -> None:
        raise KeyError

    big = Big()
    gone = weakref.ref(big)
    with pytest.raises(KeyError):
        await worker.run(fail, big)
    await worker.run(len, ())
    del big
    gc.collect()
    assert gone() is None


async def test_a_connection_lives_on_its_worker(worker: Worker, connection: Connection) -> None:
    sql = "INSERT INTO note (text) VALUES (?)"
    async with trio.open_nursery() as nursery:
        for n in range(20):
            nursery.start_soon(worker.run, connection.insert, sql, (b"%d" % n,))
    assert await worker.run(connection.one, "SELECT count(*) FROM note") == (20,)
