"""The door of asyncio: what it does when a task is cancelled, at any moment of any call."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import memoryd
from memoryd.aio import Memory
from memoryd.core import Accepted
from memoryd.errors import ClosedError, ConfigError, MemorydError, ScopeMissing, StoreTooNew
from memoryd.store import Options, connect, open_profile
from memoryd.testing import FakeRemote, RemoteFault, registered

QUIET = {"logging": {"level": "off"}}


def run(main: Callable[[], Awaitable[None]]) -> None:
    """``asyncio.run``, failing on whatever the loop would only have logged: lost exceptions, tasks that were destroyed."""
    lost: list[dict[str, Any]] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: lost.append(context))
        await asyncio.wait_for(main(), 60)
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(watched(), debug=False)
    gc.collect()
    assert not lost
    assert not [thread for thread in threading.enumerate() if thread.name == "memoryd:loop"]


@contextmanager
def hanging() -> Iterator[FakeRemote]:
    remote = FakeRemote(outage=RemoteFault("hang"))
    with registered("fake", lambda context: remote):
        yield remote


# -- scope ---------------------------------------------------------------------------------------------------------------------------


def test_every_task_has_its_own_scope(tmp_path: Path) -> None:
    async def work(memory: Memory, number: int) -> list[str]:
        with memoryd.scope(user=f"user {number}", session="s1"):
            await memory.sync_turn(f"zebra {number}", "ok")
            return [hit.text for hit in await memory.recall("zebra")]

    async def main() -> None:
        async with Memory(tmp_path) as memory:
            found = await asyncio.gather(*(work(memory, number) for number in range(64)))
            assert found == [[f"zebra {number}"] for number in range(64)]
            with pytest.raises(ScopeMissing):
                await memory.recall("zebra")

    run(main)


def test_loops_in_other_threads_may_use_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with Memory(tmp_path) as memory:
            with memoryd.scope(user="ada", session="s1"):
                await memory.sync_turn("zebra", "ok")
                context = contextvars.copy_context()
            found = await asyncio.to_thread(context.run, lambda: asyncio.run(recalled(memory)))
            assert found == ["zebra"]

    async def recalled(memory: Memory) -> list[str]:
        return [hit.text for hit in await memory.recall("zebra")]

    run(main)


# -- cancellation --------------------------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Memory], Awaitable[object]]] = {
    "sync_turn": lambda memory: memory.sync_turn("zebra", "ok"),
    "queue_prefetch": lambda memory: memory.queue_prefetch("zebra"),
    "mark_session": lambda memory: memory.mark_session("end"),
    "dead_letters": lambda memory: memory.dead_letters(),
    "settled": lambda memory: memory.settled(Accepted("held", None, "00" * 16), 30.0),
    "prefetch": lambda memory: memory.prefetch("zebra"),
    "recall": lambda memory: memory.recall("zebra"),
    "store": lambda memory: memory.store("city", "Oslo"),
    "retrieve": lambda memory: memory.retrieve("city"),
    "query": lambda memory: memory.query("city"),
    "list_keys": lambda memory: memory.list_keys(),
    "list_memories": lambda memory: memory.list_memories(),
    "history": lambda memory: memory.history("city"),
    "find": lambda memory: memory.find("00" * 16),
    "edit": lambda memory: memory.edit("00" * 16, "text"),
    "delete": lambda memory: memory.delete("city"),
    "forget": lambda memory: memory.forget(key="city"),
    "flush": lambda memory: memory.flush(),
    "drain": lambda memory: memory.drain(),
    "catch_up": lambda memory: memory.catch_up(30.0),
    "checkpoint": lambda memory: memory.checkpoint([{"role": "user", "content": "zebra"}]),
    "checkpoints": lambda memory: memory.checkpoints(),
    "checkpoint_info": lambda memory: memory.checkpoint_info("00" * 16),
    "restore": lambda memory: memory.restore("00" * 16),
    "verify": lambda memory: memory.verify(),
    "status": lambda memory: memory.status(),
}


def test_every_method_is_listed() -> None:
    assert set(CALLS) == {name for name in vars(Memory) if not name.startswith("_")} - {"close"}


@pytest.mark.parametrize("locked", [False, True], ids=["idle", "locked"])
def test_a_cancelled_call_ends_and_harms_nothing(tmp_path: Path, locked: bool) -> None:
    """Each cancelled at once, then a little later each time, until it has ended before it could be cancelled."""

    async def main() -> None:
        async with Memory(tmp_path, config={"deadlines": {"close": 2.0, "checkpoint": 0.2}, **QUIET}) as memory:
            with memoryd.scope(user="ada", session="s1"):
                await memory.sync_turn("before", "ok")
                await memory.drain()
                await memory.checkpoint([{"role": "user", "content": "before"}])
                others = [lock(tmp_path, store) for store in ("memory.db", "archive.db")] if locked else []
                for call in CALLS.values():
                    for pause in (0, 0, 0.001, 0.01):
                        await cancelled(asyncio.create_task(as_task(call(memory))), pause)
                for other in others:
                    other.run("ROLLBACK")
                    other.close()
                await memory.sync_turn("after", "ok")
                assert "after" in [hit.text for hit in await memory.recall("after")]
                assert (await memory.verify()).ok

    run(main)


async def as_task(call: Awaitable[object]) -> object:
    return await call


def lock(home: Path, store: str) -> Any:
    other = connect(open_profile(home, "default").directory / store, Options())
    other.run("BEGIN IMMEDIATE")
    return other


async def cancelled(task: asyncio.Task[object], pause: float) -> None:
    await asyncio.sleep(pause)
    task.cancel()
    task.cancel()  # whoever cancels may be impatient
    try:
        await task
    except (asyncio.CancelledError, MemorydError):
        return


def test_a_cancelled_call_is_cancelled_on_the_memorys_loop(tmp_path: Path) -> None:
    async def main() -> None:
        with hanging():
            async with Memory(tmp_path, config={"mirrors": ["fake"], **QUIET}) as memory:
                with memoryd.scope(user="ada", session="s1"):
                    await memory.sync_turn("zebra", "ok")
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.1):
                            await memory.drain(3600)
                    with pytest.raises(asyncio.TimeoutError):
                        await asyncio.wait_for(memory.drain(3600), 0.1)

    run(main)


def test_a_commit_that_has_begun_is_finished(tmp_path: Path) -> None:
    rows = [{"role": "user", "content": f"row {n}"} for n in range(3000)]

    async def main() -> None:
        async with Memory(tmp_path) as memory:
            with memoryd.scope(user="ada", session="s1"):
                for pause in (0.0, 0.005, 0.02):
                    await cancelled(asyncio.create_task(as_task(memory.checkpoint(rows))), pause)
                receipt = await memory.checkpoint(rows)
                assert (await memory.verify()).ok
                assert len((await memory.restore(receipt.id)).rows) == 3000

    run(main)


def test_a_caller_whose_loop_was_closed_harms_nobody(tmp_path: Path) -> None:
    async def main() -> None:
        with hanging():
            async with Memory(tmp_path, config={"mirrors": ["fake"], **QUIET}) as memory:
                with memoryd.scope(user="ada", session="s1"):
                    await memory.sync_turn("zebra", "ok")
                    await asyncio.to_thread(abandoned, memory)
                    await asyncio.sleep(0.5)  # the call of the closed loop has ended meanwhile
                    assert len(await memory.recall("zebra")) == 1

    def abandoned(memory: Memory) -> None:
        loop = asyncio.new_event_loop()
        call = memory.drain(0.2)
        coroutine = as_task(call)
        task = loop.create_task(coroutine)
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.close()
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # what this thread did is the point

    run(main)


# -- opening and closing -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pause", [0, 0.002, 0.02])
def test_a_cancelled_open_leaves_nothing_open(tmp_path: Path, pause: float) -> None:
    async def hold() -> object:
        async with Memory(tmp_path):
            await asyncio.sleep(3600)
        return None

    async def main() -> None:
        await cancelled(asyncio.create_task(hold()), pause)

    run(main)


@pytest.mark.parametrize("pause", [0, 0.002, 0.02])
def test_a_cancelled_close_closes(tmp_path: Path, pause: float) -> None:
    async def main() -> None:
        memory = await Memory(tmp_path).__aenter__()
        with memoryd.scope(user="ada", session="s1"):
            await memory.sync_turn("zebra", "ok")
        await cancelled(asyncio.create_task(as_task(memory.close())), pause)
        with pytest.raises(ClosedError):
            await memory.status()
        await memory.close()

    run(main)


def test_calls_that_run_while_it_closes_end(tmp_path: Path) -> None:
    async def main() -> None:
        with hanging(), memoryd.scope(user="ada", session="s1"):
            async with Memory(tmp_path, config={"mirrors": ["fake"], **QUIET}) as memory:
                await memory.sync_turn("zebra", "ok")
                calls = [asyncio.create_task(memory.drain(3600)) for _ in range(8)]
                await asyncio.sleep(0.05)
            assert {type(problem) for problem in await asyncio.gather(*calls, return_exceptions=True)} == {ClosedError}

    run(main)


def test_use_before_open_and_after_close(tmp_path: Path) -> None:
    async def main() -> None:
        memory = Memory(tmp_path)
        with memoryd.scope(user="ada", session="s1"):
            with pytest.raises(ClosedError, match="async with"):
                await memory.recall("zebra")
            async with memory:
                await memory.recall("zebra")
            with pytest.raises(ClosedError):
                await memory.recall("zebra")
            with pytest.raises(ClosedError):
                await memory.sync_turn("zebra", "ok")

    run(main)


def test_an_error_of_opening_is_raised_where_it_is_opened(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(ConfigError):
            await Memory(tmp_path, config={"no_such_key": 1}).__aenter__()
        async with Memory(tmp_path):
            pass
        connection = connect(open_profile(tmp_path, "default").directory / "log.db", Options())
        connection.run("PRAGMA user_version = 99")
        connection.close()
        with pytest.raises(StoreTooNew):
            await Memory(tmp_path).__aenter__()

    run(main)


def test_a_memory_that_nobody_closes_is_closed(tmp_path: Path) -> None:
    async def main() -> None:
        memory = await Memory(tmp_path).__aenter__()
        with memoryd.scope(user="ada", session="s1"):
            await memory.sync_turn("zebra", "ok")
        [loop] = [thread for thread in threading.enumerate() if thread.name == "memoryd:loop"]
        del memory
        gc.collect()
        await asyncio.to_thread(loop.join, 30)

    run(main)
