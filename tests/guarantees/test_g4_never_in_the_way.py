"""G4: every entry point ends inside a finite deadline, whatever is locked, dead or broken; a bug in a task does not stop the rest."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

import memoryd
from memoryd.core import Accepted
from memoryd.errors import BackendTransient, MemorydError
from memoryd.store import Options, connect, open_profile, profile_directory

DEADLINES = dict.fromkeys(("prefetch", "recall", "retrieve", "query", "store", "flush", "drain", "close", "exit", "checkpoint"), 0.3)
Call = Callable[[memoryd.Runtime], Any]

# every public method of the runtime; the test below fails where one is not listed
CALLS: dict[str, Call] = {
    "sync_turn": lambda rt: rt.sync_turn("hello", "hi"),
    "queue_prefetch": lambda rt: rt.queue_prefetch("hello"),
    "mark_session": lambda rt: rt.mark_session("end"),
    "dead_letters": lambda rt: rt.dead_letters(),
    "last_flush": lambda rt: rt.last_flush(),
    "store": lambda rt: rt.store("k", "v"),
    "delete": lambda rt: rt.delete("k"),
    "edit": lambda rt: rt.edit("00" * 16, "text"),
    "settled": lambda rt: rt.settled(Accepted("held", None, "00" * 16), 0.3),
    "recall": lambda rt: rt.recall("hello"),
    "prefetch": lambda rt: rt.prefetch("hello"),
    "retrieve": lambda rt: rt.retrieve("k"),
    "query": lambda rt: rt.query("k"),
    "list_keys": lambda rt: rt.list_keys(),
    "list_memories": lambda rt: rt.list_memories(),
    "history": lambda rt: rt.history("k"),
    "find": lambda rt: rt.find("00" * 16),
    "forget": lambda rt: rt.forget(key="k"),
    "flush": lambda rt: rt.flush(),
    "drain": lambda rt: rt.drain(),
    "catch_up": lambda rt: rt.catch_up(0.3),
    "checkpoint": lambda rt: rt.checkpoint([{"role": "user", "content": "hello"}]),
    "checkpoints": lambda rt: rt.checkpoints(),
    "restore": lambda rt: rt.restore("00" * 16),
    "checkpoint_info": lambda rt: rt.checkpoint_info("00" * 16),
    "verify": lambda rt: rt.verify(),
    "status": lambda rt: rt.status(),
}


def public_methods() -> set[str]:
    return {name for name, _ in inspect.getmembers(memoryd.Runtime, inspect.isfunction) if not name.startswith("_")}


def test_every_entry_point_is_listed() -> None:
    assert public_methods() == set(CALLS)


@pytest.mark.parametrize("name", sorted(CALLS))
async def test_every_entry_point_ends_while_every_store_is_locked(tmp_path: Path, name: str) -> None:
    async with memoryd.open_runtime(tmp_path, config={"deadlines": DEADLINES}) as rt:
        with memoryd.scope(user="ada", session="s1"), ExitStack() as locks:
            rt.sync_turn("before", "ok")
            await rt.drain()
            directory = open_profile(tmp_path, "default").directory
            await rt.checkpoint([{"role": "user", "content": "before"}])
            for store in ("log.db", "memory.db", "archive.db"):
                other = connect(directory / store, Options())
                locks.callback(other.close)
                locks.enter_context(other.transaction("IMMEDIATE"))
            with trio.fail_after(30):  # a hang, not a measurement
                try:
                    answer = CALLS[name](rt)
                    if inspect.isawaitable(answer):
                        await answer
                except MemorydError:
                    pass  # a typed refusal is an answer


async def test_recall_answers_from_what_is_committed_and_says_so(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path, config={"deadlines": {"recall": 0.5}}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("zebra one", "ok")
            await rt.drain()
            other = connect(open_profile(tmp_path, "default").directory / "memory.db", Options())
            with other.transaction("IMMEDIATE"):
                rt.sync_turn("zebra two", "ok")
                found = await rt.recall("zebra")
                assert sorted(hit.text for hit in found) == ["zebra one", "zebra two"]  # the tail of the log is scanned
            other.close()


async def test_prefetch_is_empty_rather_than_late(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path, config={"deadlines": {"prefetch": 0.000001}}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("zebra", "ok")
            context = await rt.prefetch("zebra")
            assert (context.text, context.complete) == ("", False)


async def test_a_bug_in_a_task_is_contained_counted_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import memoryd_local

    async def broken(*_: object) -> list[object]:
        raise ZeroDivisionError("a bug")

    async with memoryd.open_runtime(tmp_path, on_bug="contain", config={"logging": {"level": "off"}}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            monkeypatch.setattr(memoryd_local.LocalBackend, "apply", broken)
            assert rt.sync_turn("zebra", "ok").state == "journaled"
            with trio.fail_after(30):
                while (await rt.status()).state != "broken":
                    await trio.sleep(0.05)
            tasks = {task.name: task for task in (await rt.status()).tasks}
            assert (tasks["writer local"].state, tasks["writer local"].last_error) == ("failed", "ZeroDivisionError")
            assert rt.sync_turn("still accepted", "ok").state == "journaled"
            assert (await rt.checkpoint([{"role": "user", "content": "x"}])).verdict == "archived"
            await rt.flush()


async def test_under_testing_a_bug_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import memoryd.testing  # its presence is what makes bugs loud
    import memoryd_local

    async def broken(*_: object) -> list[object]:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(memoryd_local.LocalBackend, "apply", broken)
    with pytest.raises(BaseExceptionGroup) as caught:
        async with memoryd.open_runtime(tmp_path) as rt:
            with memoryd.scope(user="ada", session="s1"):
                rt.sync_turn("zebra", "ok")
            await trio.sleep(5)
    assert caught.group_contains(ZeroDivisionError)


async def test_an_error_of_the_body_leaves_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        async with memoryd.open_runtime(tmp_path):
            raise KeyError("mine")


async def test_a_cancelled_body_closes_and_ends(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        async with memoryd.open_runtime(tmp_path) as rt:
            with memoryd.scope(user="ada", session="s1"):
                rt.sync_turn("zebra", "ok")
            scope.deadline = trio.current_time() + 0.2
            await trio.sleep_forever()
    assert scope.cancelled_caught
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada"):
            await rt.catch_up(10)
            assert await rt.recall("zebra")


def test_importing_memoryd_changes_nothing_in_its_host() -> None:
    script = """
import atexit, logging, signal, sys
registered = []
atexit.register = lambda *a, **k: registered.append(a)
before = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)}
import memoryd, memoryd.blocking, memoryd.aio, memoryd.runtime
assert before == {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)}
assert not logging.root.handlers and "structlog" not in sys.modules
mine = [a for a in registered if "memoryd" in getattr(a[0], "__module__", "")]
assert not mine, mine
"""
    import subprocess

    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


async def test_recall_reads_the_log_itself_while_the_projection_cannot_be_opened(tmp_path: Path) -> None:
    directory = open_profile(tmp_path, "default").directory
    (directory / "memory.db").mkdir()  # nothing that SQLite could open
    async with memoryd.open_runtime(tmp_path, config={"logging": {"level": "off"}}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("my zebra is called Zoe", "ok")
            found = await rt.recall("zebra")
            assert [hit.text for hit in found] == ["my zebra is called Zoe"]
            assert (found.source, found.stale, found.behind) == ("log", True, 0)
            (directory / "memory.db").rmdir()
            with trio.fail_after(30):
                while (await rt.recall("zebra")).stale:
                    await trio.sleep(0.05)


@pytest.mark.parametrize("part", ["whole", "index"])
async def test_a_damaged_memory_answers_at_once_from_the_log_and_names_the_remedy(tmp_path: Path, part: str) -> None:
    config = {"logging": {"level": "off"}, "deadlines": dict.fromkeys(DEADLINES, 600.0)}
    async with memoryd.open_runtime(tmp_path, config=config) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("zebra one", "ok")
            await rt.store("city", "Oslo")
            await rt.drain()
    path = profile_directory(tmp_path, "default") / "memory.db"
    if part == "whole":
        path.write_bytes(b"\xa5" * path.stat().st_size)
    else:
        other = connect(path, Options())
        other.run("DELETE FROM fts_data WHERE id > 10")
        other.close()
    with trio.fail_after(60):  # far below every deadline: nobody waits for what will not come
        async with memoryd.open_runtime(tmp_path, config=config, on_bug="contain") as rt:
            with memoryd.scope(user="ada", session="s1"):
                rt.sync_turn("zebra two", "ok")
                found = await rt.recall("zebra")
                assert sorted(hit.text for hit in found) == ["zebra one", "zebra two"]
                assert found.stale
                status = await rt.status()
                assert (status.state, status.backends[0].last_error) == ("broken", "StoreCorrupt")
                assert any("memoryd repair" in note for note in status.notes)
                if part == "whole":
                    with pytest.raises(BackendTransient, match="memoryd repair"):
                        await rt.retrieve("city")
                    assert await rt.catch_up(600) == 3
                    assert not await rt.drain()
