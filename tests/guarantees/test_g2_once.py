"""G2: readers see each event once, though it is retried, replayed, or processes race."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import trio

import memoryd
from memoryd.core import Cursor
from memoryd.journal import Journal, Limits
from memoryd.runtime import available_backends
from memoryd.store import open_profile

CHILD = """
import sys, trio, memoryd
async def main():
    async with memoryd.open_runtime(sys.argv[1]) as rt:
        with memoryd.scope(user="ada", session="s" + sys.argv[2]):
            for n in range(int(sys.argv[3])):
                rt.sync_turn(f"zebra{sys.argv[2]}x{n}", "ok", turn_id=f"shared-{n}" if sys.argv[2] == "same" else None)
                if n % 7 == 0:
                    await trio.sleep(0.001)
        await rt.drain()
trio.run(main)
"""


async def run_children(home: Path, names: list[str], count: int) -> None:
    async with trio.open_nursery() as nursery:
        for name in names:
            command = [sys.executable, "-c", CHILD, str(home), name, str(count)]
            nursery.start_soon(trio.run_process, command)


async def turns_in(home: Path) -> int:
    async with memoryd.open_runtime(home) as rt:
        assert await rt.catch_up(30) == 0
        return (await rt.status()).backends[0].rows["turns"]


async def test_a_repeated_turn_id_is_one_turn(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            first = rt.sync_turn("hello", "hi", turn_id="t1")
            again = rt.sync_turn("hello again", "hi", turn_id="t1")
            assert (again.event_id, again.seq, again.reason) == (first.event_id, first.seq, "duplicate")
        with memoryd.scope(user="ada", session="s2"):
            assert rt.sync_turn("hello", "hi", turn_id="t1").reason == ""
        with memoryd.scope(user="bob", session="s1"):
            assert rt.sync_turn("hello", "hi", turn_id="t1").reason == ""
    assert await turns_in(tmp_path) == 3


async def test_a_repeat_is_known_after_restart_and_after_a_forget(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            first = rt.sync_turn("zebra", "hi", turn_id="t1")
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            assert rt.sync_turn("zebra", "hi", turn_id="t1").event_id == first.event_id
            assert (await rt.forget(first.event_id)).erased
            assert rt.sync_turn("zebra", "hi", turn_id="t1").reason == "duplicate"
            assert not await rt.recall("zebra")


@pytest.mark.parametrize("processes", [2, 10])
async def test_processes_on_one_profile_lose_and_double_nothing(tmp_path: Path, processes: int) -> None:
    count = 200 // processes
    await run_children(tmp_path, [str(n) for n in range(processes)], count)
    assert await turns_in(tmp_path) == processes * count
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada"):
            for n in range(processes):
                texts = [hit.text for hit in await rt.recall(f"zebra{n}x{count - 1}")]
                assert texts.count(f"zebra{n}x{count - 1}") == 1


async def test_processes_that_send_the_same_turns_store_them_once(tmp_path: Path) -> None:
    await run_children(tmp_path, ["same"] * 4, 50)
    assert await turns_in(tmp_path) == 50


async def test_a_projection_made_anew_has_the_same_content(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            for n in range(30):
                rt.sync_turn(f"zebra {n}", "ok")
            await rt.store("k", "v1")
            await rt.store("k", "v2")
            await rt.drain()
            before = [(hit.id, hit.text) for hit in await rt.recall("zebra", 50)]
    for path in open_profile(tmp_path, "default").directory.glob("memory.db*"):
        path.unlink()
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada"):
            assert await rt.catch_up(30) == 0
            assert [(hit.id, hit.text) for hit in await rt.recall("zebra", 50)] == before
            assert [version.value for version in await rt.history("k")] == ["v2", "v1"]


async def test_applying_the_same_entries_again_changes_nothing(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            for n in range(5):
                rt.sync_turn(f"zebra {n}", "ok")
        await rt.drain()
    profile = open_profile(tmp_path, "default")
    journal = Journal(profile, Limits())
    entries = journal.read(0)
    journal.close()
    from memoryd.core import BackendContext

    create = available_backends()["local"].load()
    backend = create(BackendContext("local", profile.directory, profile.name, profile.instance, profile.key))
    await backend.open()
    for _ in range(2):
        assert {outcome.kind for outcome in await backend.apply(entries)} == {"ok"}
    assert (await backend.counts())["turns"] == 5
    gap = [memoryd.core.Entry(Cursor(entries[0].cursor.epoch, 9), entries[0].event)]
    assert [outcome.kind for outcome in await backend.apply(gap)] == ["gap"]
    await backend.aclose()
