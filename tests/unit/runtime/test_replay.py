"""Replay: the whole log to a backend, once for a reader, in order, on its bad days too; what was forgotten stays so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import memoryd
from memoryd.core import Config, Erased, Turn
from memoryd.errors import BackendTransient, BackendUnavailable, ConfigError, InvalidInput, StoreLocked
from memoryd.journal import Erasures, Journal, Limits, Outbox
from memoryd.runtime import Replayed, replay
from memoryd.store import open_profile
from memoryd.testing import FakeRemote, RemoteFault, registered

CONFIG = Config(delivery=memoryd.core.DeliveryConfig(batch_events=10))
Send = Callable[..., Any]


@pytest.fixture
def autojump_clock() -> MockClock:
    return MockClock(autojump_threshold=0.05)


async def filled(home: Path, count: int = 35) -> None:
    async with memoryd.open_runtime(home, config={"logging": {"level": "off"}}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            for number in range(count):
                rt.sync_turn(f"turn {number}", "ok")


async def send(home: Path, remote: FakeRemote, **options: Any) -> Replayed:
    with registered("fake", lambda context: remote):
        return await replay(home, "default", CONFIG, "fake", **options)


def seen(remote: FakeRemote) -> list[str]:
    return [turn.user for turn in remote.turns]


TURNS = [f"turn {number}" for number in range(35)]


async def test_all_of_it_in_order_and_then_what_is_new(tmp_path: Path, autojump_clock: MockClock) -> None:
    await filled(tmp_path)
    remote, told = FakeRemote(), []
    assert await send(tmp_path, remote, on_progress=lambda *steps: told.append(steps)) == Replayed("fake", 1, 35, 35)
    assert seen(remote) == TURNS
    assert told == [(10, 35), (20, 35), (30, 35), (35, 35)]
    assert await send(tmp_path, remote) == Replayed("fake", 36, 35, 0)
    await filled(tmp_path, 1)
    assert await send(tmp_path, remote) == Replayed("fake", 36, 36, 1)
    assert await send(tmp_path, remote, from_seq=30) == Replayed("fake", 30, 36, 7)
    assert seen(remote) == [*TURNS, "turn 0"], "each once, though some came twice"


async def test_a_dry_run_asks_nobody(tmp_path: Path, autojump_clock: MockClock) -> None:
    await filled(tmp_path)
    remote = FakeRemote()
    for _ in range(2):
        assert await send(tmp_path, remote, dry_run=True) == Replayed("fake", 1, 35, 35, dry_run=True)
    assert await send(tmp_path, remote, from_seq=30, dry_run=True) == Replayed("fake", 30, 35, 6, dry_run=True)
    assert (remote.opens, remote.calls) == (0, 0)


async def test_bad_answers_are_outlived(tmp_path: Path, autojump_clock: MockClock) -> None:
    await filled(tmp_path)
    faults = ["transient", "lost", "applied", "hang", "applied"]
    remote = FakeRemote(plan=[RemoteFault(name) for name in faults])  # type: ignore[arg-type]
    assert (await send(tmp_path, remote)).sent == 35
    assert seen(remote) == TURNS
    assert [entry.seq for entry in remote.received] != sorted({entry.seq for entry in remote.received}), "something came twice"


async def test_an_outage_ends_it_and_the_next_goes_on(tmp_path: Path, autojump_clock: MockClock) -> None:
    await filled(tmp_path)
    remote = FakeRemote()

    def out_after(done: int, total: int) -> None:
        remote.outage = RemoteFault("transient") if done == 20 else None

    with pytest.raises(BackendTransient, match="stopped before event 21, the same command goes on from there"):
        await send(tmp_path, remote, on_progress=out_after)
    assert seen(remote) == TURNS[:20]
    with pytest.raises(BackendTransient):
        await send(tmp_path, remote)
    remote.outage = None
    assert await send(tmp_path, remote) == Replayed("fake", 21, 35, 15)
    assert seen(remote) == TURNS
    assert len(remote.received) == 35


async def test_events_that_are_refused_for_good_are_found_and_kept_aside(tmp_path: Path, autojump_clock: MockClock) -> None:
    await filled(tmp_path)
    remote = FakeRemote(
        rejects=lambda event: isinstance(event, Turn) and event.user == "turn 3",
        poisons=lambda event: isinstance(event, Turn) and event.user in ("turn 17", "turn 18"),
    )
    assert await send(tmp_path, remote) == Replayed("fake", 1, 35, 32, refused=3)
    assert seen(remote) == [text for text in TURNS if text not in ("turn 3", "turn 17", "turn 18")]
    async with memoryd.open_runtime(tmp_path) as rt:
        assert [(letter.backend, letter.seq) for letter in rt.dead_letters()] == [("fake", 4), ("fake", 18), ("fake", 19)]


async def test_deletions_and_forgets_are_respected(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            await rt.store("city", "Oslo")
            await rt.store("city", "Bergen")
            await rt.store("colour", "blue")
            await rt.delete("colour")
            secret = rt.sync_turn("my code is 4711", "kept")
            rt.sync_turn("hello", "hi")
            await rt.forget(secret.event_id)
    remote = FakeRemote()
    await send(tmp_path, remote)
    assert await remote.list_keys("ada") == ["city"]
    city = await remote.retrieve("ada", "city")
    assert city is not None
    assert city.value == "Bergen"
    assert seen(remote) == ["hello"]
    assert "4711" not in repr([vars_of(entry.event) for entry in remote.received])
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada"):
            await rt.forget(key="city")
    await send(tmp_path, remote)
    assert await remote.list_keys("ada") == []


def vars_of(event: Any) -> list[Any]:
    return [getattr(event, name) for name in type(event).__slots__ if not name.startswith("__")]


async def test_a_forget_that_is_not_through_yet_counts(tmp_path: Path, autojump_clock: MockClock) -> None:
    await filled(tmp_path, 3)
    store = open_profile(tmp_path, "default")
    journal = Journal(store, Limits())
    from memoryd.core import Forget, Scope, new_event_id
    from memoryd.journal import ErasePlan

    Erasures(journal).begin(Forget(new_event_id(), Scope(user="ada"), 0, (2,)), ErasePlan("ada"))
    journal.close()  # the process ended before a payload was cleared
    remote = FakeRemote()
    await send(tmp_path, remote)
    assert [type(entry.event) for entry in remote.received][:3] == [Turn, Erased, Turn]
    assert seen(remote) == ["turn 0", "turn 2"]


async def test_delivery_goes_on_where_a_whole_replay_ended(tmp_path: Path, autojump_clock: MockClock) -> None:
    await filled(tmp_path)
    remote = FakeRemote()
    await send(tmp_path, remote)
    with registered("fake", lambda context: remote), memoryd.scope(user="ada", session="s1"):
        async with memoryd.open_runtime(tmp_path, config={"backend": "fake"}) as rt:
            rt.sync_turn("new", "ok")
            await rt.drain(30)
    assert seen(remote) == [*TURNS, "new"]
    assert len(remote.received) == 36


async def test_a_replay_of_a_part_does_not_stand_for_the_whole(tmp_path: Path, autojump_clock: MockClock) -> None:
    await filled(tmp_path)
    await send(tmp_path, FakeRemote(), from_seq=20)
    journal = Journal(open_profile(tmp_path, "default"), Limits())
    assert Outbox(journal).cursor("fake").seq == 0
    journal.close()


async def test_two_at_once_are_one_too_many(tmp_path: Path, autojump_clock: MockClock) -> None:
    await filled(tmp_path)
    slow = FakeRemote(plan=[RemoteFault("hang")])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, tmp_path, slow)
        with trio.fail_after(30):
            while not slow.calls:
                await trio.sleep(0.1)
        with pytest.raises(StoreLocked, match="another replay"):
            await send(tmp_path, FakeRemote())
    assert seen(slow) == TURNS


async def test_what_cannot_be_replayed_to(tmp_path: Path, autojump_clock: MockClock) -> None:
    await filled(tmp_path, 3)
    with pytest.raises(ConfigError, match='"null" keeps nothing'):
        await replay(tmp_path, "default", CONFIG, "null")
    with pytest.raises(ConfigError, match='"nowhere" is not installed'):
        await replay(tmp_path, "default", CONFIG, "nowhere")
    with pytest.raises(BackendUnavailable):
        await replay(tmp_path, "default", CONFIG, "honcho")
    with pytest.raises(ConfigError, match="no log"):
        await replay(tmp_path, "default", Config(backend="null"), "local")
    with pytest.raises(InvalidInput, match="the log ends at 3"):
        await send(tmp_path, FakeRemote(), from_seq=5)
    assert (await replay(tmp_path, "default", CONFIG, "local")).sent == 0, "local keeps its own place"
