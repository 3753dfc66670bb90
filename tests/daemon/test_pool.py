"""Profiles in one process: opened on demand, closed when idle, bounded, alone with their faults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import trio

import memoryd
from memoryd.core import Config
from memoryd.daemon._pool import Pool
from memoryd.errors import DaemonBusy, DaemonUnavailable, StoreCorrupt
from memoryd.log import Log
from memoryd.runtime import open_runtime
from memoryd.store import profile_directory
from memoryd.testing import FakeRemote, RemoteFault, registered

QUIET = Log("off")


def opener(config: Config | None = None) -> Callable[[Path, str], AbstractAsyncContextManager[memoryd.Runtime]]:
    return lambda home, profile: open_runtime(home, profile, config, on_bug="contain")


@asynccontextmanager
async def pooled(most: int = 8, idle: float = 300.0, config: Config | None = None) -> AsyncIterator[Pool]:
    pool = Pool(opener(config), QUIET, most=most, idle=idle)
    async with trio.open_nursery() as nursery:
        await nursery.start(pool.run)
        yield pool
        pool.end()


async def until(condition: Callable[[], object]) -> None:
    with trio.fail_after(30):
        while not condition():
            await trio.sleep(0.01)


async def test_a_profile_opens_once_for_many(tmp_path: Path) -> None:
    seen: list[memoryd.Runtime] = []

    async def use() -> None:
        async with pool.profile(tmp_path, "work") as runtime:
            seen.append(runtime)
            await trio.sleep(0.01)

    async with pooled() as pool:
        assert pool.at_hand(tmp_path, "work") is None
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(use)
        assert len(set(map(id, seen))) == 1
        assert pool.at_hand(tmp_path, "work") is seen[0]
        assert pool.runtimes() == [seen[0]]


async def test_what_nobody_uses_is_closed_and_opens_again(tmp_path: Path) -> None:
    async with pooled(idle=0.2) as pool:
        async with pool.profile(tmp_path, "a") as first:
            with memoryd.scope(user="ada", session="s"):
                first.sync_turn("I live in Oslo", "Noted.")
            await trio.sleep(0.6)
            assert pool.at_hand(tmp_path, "a") is first, "a profile in use is not idle"
        await until(lambda: not pool.runtimes())
        async with pool.profile(tmp_path, "a") as second:
            assert second is not first
            with memoryd.scope(user="ada"):
                assert [hit.text for hit in await second.recall("Oslo")] == ["I live in Oslo"]


async def test_a_backend_that_is_down_keeps_its_profile_open(tmp_path: Path) -> None:
    remote = FakeRemote(outage=RemoteFault("transient"))
    with registered("fake", lambda context: remote):
        async with pooled(idle=0.1, config=Config(mirrors=("fake",))) as pool:
            async with pool.profile(tmp_path, "a") as runtime:
                with memoryd.scope(user="ada", session="s"):
                    runtime.sync_turn("I live in Oslo", "Noted.")
            await trio.sleep(0.6)
            assert pool.runtimes() == [runtime]
            remote.outage = None
            await until(lambda: not pool.runtimes())
    assert [turn.user for turn in remote.turns] == ["I live in Oslo"]


async def test_the_number_is_bounded_and_the_longest_unused_gives_way(tmp_path: Path) -> None:
    async with pooled(most=2) as pool:
        for name in ("a", "b"):
            async with pool.profile(tmp_path, name):
                pass
            await trio.sleep(0.01)
        assert pool.at_hand(tmp_path, "a") is not None
        async with pool.profile(tmp_path, "c"):
            assert {runtime.profile for runtime in pool.runtimes()} == {"a", "c"}


async def test_where_all_are_in_use_one_is_told_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.daemon._pool._WAIT", 0.2)
    async with pooled(most=1) as pool, pool.profile(tmp_path, "a"):
        with pytest.raises(DaemonBusy, match="1 profiles are in use"):
            async with pool.profile(tmp_path, "b"):
                pass


async def test_a_broken_profile_harms_no_other_and_heals(tmp_path: Path) -> None:
    async with pooled() as pool:
        async with pool.profile(tmp_path, "good") as good:
            broken = profile_directory(tmp_path, "bad")
            broken.mkdir(parents=True)
            identity = broken / "profile.json"
            identity.write_text("{")
            for _ in range(3):
                with pytest.raises(StoreCorrupt):
                    async with pool.profile(tmp_path, "bad"):
                        pass
            assert pool.at_hand(tmp_path, "good") is good
        identity.unlink()
        async with pool.profile(tmp_path, "bad") as healed:
            assert healed.profile == "bad"


async def test_a_bug_in_one_runtime_ends_that_one_only(tmp_path: Path) -> None:
    crash = trio.Event()

    @asynccontextmanager
    async def crashing(home: Path, profile: str) -> AsyncIterator[memoryd.Runtime]:
        async with open_runtime(home, profile, on_bug="contain") as runtime, trio.open_nursery() as nursery:
            if profile == "bad":
                nursery.start_soon(explode)
            yield runtime
            nursery.cancel_scope.cancel()

    async def explode() -> None:
        await crash.wait()
        raise ZeroDivisionError

    pool = Pool(crashing, QUIET)
    async with trio.open_nursery() as nursery:
        await nursery.start(pool.run)
        for name in ("good", "bad"):
            async with pool.profile(tmp_path, name):
                pass
        crash.set()
        await until(lambda: [runtime.profile for runtime in pool.runtimes()] == ["good"])
        pool.end()


async def test_the_end_drains_and_refuses_who_comes_late(tmp_path: Path) -> None:
    async with pooled() as pool, pool.profile(tmp_path, "a") as runtime:
        with memoryd.scope(user="ada", session="s"):
            for number in range(500):
                runtime.sync_turn(f"turn {number}", "ok")
    with pytest.raises(DaemonUnavailable):
        async with pool.profile(tmp_path, "a"):
            pass
    async with open_runtime(tmp_path, "a") as again:
        assert (await again.status()).log.head == 500  # type: ignore[union-attr]
