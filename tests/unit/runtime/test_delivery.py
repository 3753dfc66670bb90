"""Delivery to a remote backend: what happens on its bad days, and what a reader of it sees afterwards.

Time is trio's MockClock, so that backoffs and deadlines cost nothing; it jumps when every task has waited for 50 ms, which leaves the
store's threads alone.  (Every half second of it costs those 50 ms, because a runtime looks around twice a second: keep it short.)
"""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import memoryd
from memoryd.core import Status, Turn
from memoryd.journal import Journal, Limits
from memoryd.store import Options, connect, open_profile
from memoryd.testing import FakeRemote, RemoteFault, registered

QUIET = {"logging": {"level": "off"}}
MIRRORED = {"mirrors": ["fake"], **QUIET}
REMOTE = {"backend": "fake", **QUIET}


@pytest.fixture
def autojump_clock() -> MockClock:
    return MockClock(autojump_threshold=0.05)


@asynccontextmanager
async def opened(home: Path, remote: FakeRemote, **config: Any) -> AsyncIterator[memoryd.Runtime]:
    with registered("fake", lambda context: remote), memoryd.scope(user="ada", session="s1"):
        async with memoryd.open_runtime(home, config={**MIRRORED, **config}) as rt:
            yield rt


async def eventually(wanted: Callable[[], bool]) -> None:
    with trio.fail_after(3600):
        while not wanted():
            await trio.sleep(0.5)


def say(rt: memoryd.Runtime, count: int, first: int = 0) -> list[str]:
    texts = [f"turn {n}" for n in range(first, first + count)]
    for text in texts:
        rt.sync_turn(text, "ok")
    return texts


def seen(remote: FakeRemote) -> list[str]:
    return [turn.user for turn in remote.turns]


def the_remote(status: Status) -> Any:
    return next(backend for backend in status.backends if backend.name == "fake")


# -- outages -----------------------------------------------------------------------------------------------------------------------


async def test_down_then_up_all_arrives_once_and_in_order(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote(outage=RemoteFault("transient"))
    async with opened(tmp_path, remote) as rt:
        texts = say(rt, 250)
        await trio.sleep(3)
        assert not remote.received
        remote.outage = None
        assert (await rt.drain(600)).remote
        assert [entry.event.user for entry in remote.received if isinstance(entry.event, Turn)] == texts


async def test_waits_grow_to_the_cap(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote(plan=[RemoteFault("transient")] * 1000)
    async with opened(tmp_path, remote, delivery={"backoff_min": 0.1, "backoff_max": 0.4}) as rt:
        say(rt, 1)
        await trio.sleep(6)
        assert 15 <= remote.calls <= 36  # between 0.2 and 0.4 seconds each, after some shorter ones


@pytest.mark.parametrize(("asked", "waited"), [(100.0, 100.0), (100_000.0, 300.0)])
async def test_a_servers_retry_after_is_honoured_up_to_a_cap(
    tmp_path: Path, autojump_clock: MockClock, asked: float, waited: float
) -> None:
    remote = FakeRemote(plan=[RemoteFault("transient", asked)])
    async with opened(tmp_path, remote) as rt:
        say(rt, 1)
        await eventually(lambda: remote.calls == 1)
        autojump_clock.jump(waited - 3)
        await trio.sleep(1)
        assert remote.calls == 1
        assert (await rt.drain(6)).remote


@pytest.mark.parametrize("fault", ["transient", "permanent"])
async def test_a_backend_that_cannot_be_opened_holds_up_nothing_and_is_opened_later(
    tmp_path: Path, autojump_clock: MockClock, fault: Any
) -> None:
    remote = FakeRemote(outage=RemoteFault(fault))
    async with opened(tmp_path, remote) as rt:
        assert (await rt.store("city", "Oslo")).accepted.state == "journaled"
        assert await rt.retrieve("city") is not None
        await eventually(lambda: bool(remote.opens))
        remote.outage = None
        await eventually(lambda: bool(remote.received))
        assert await remote.list_keys("ada") == ["city"]


async def test_a_backend_that_hangs_while_it_opens_hinders_neither_open_nor_close(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote(outage=RemoteFault("hang"))
    async with opened(tmp_path, remote, backend="fake", mirrors=[]) as rt:
        texts = say(rt, 3)
        assert (await rt.recall("turn 1")).source == "local"
        assert the_remote(await rt.status()).backlog == 3
    remote.outage = None
    async with opened(tmp_path, remote) as rt:
        assert (await rt.drain(60)).remote
        assert seen(remote) == texts


async def test_a_log_that_is_locked_when_an_answer_comes_is_no_crash(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote(plan=[RemoteFault("slow", 2.0)])
    async with opened(tmp_path, remote) as rt:
        texts = say(rt, 3)
        await eventually(lambda: remote.calls == 1)
        other = connect(open_profile(tmp_path, "default").directory / "log.db", Options())
        with other.transaction("IMMEDIATE"):
            assert rt.sync_turn("turn 3", "ok").state == "held"
            await eventually(lambda: len(remote.received) > 3)  # sent again, as the cursor could not move
            assert the_remote(await rt.status()).last_error == "StoreLocked"
        other.close()
        assert (await rt.drain(60)).remote
        assert seen(remote) == [*texts, "turn 3"]
        assert not [task for task in (await rt.status()).tasks if task.crashes]


# -- what is refused for good ------------------------------------------------------------------------------------------------------


def is_turn(number: int) -> Callable[[object], bool]:
    return lambda event: isinstance(event, Turn) and event.user == f"turn {number}"


async def test_an_event_that_is_refused_for_good_is_a_dead_letter_and_the_rest_goes_on(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    remote = FakeRemote(rejects=is_turn(3))
    async with opened(tmp_path, remote) as rt:
        texts = say(rt, 8)
        assert (await rt.drain(60)).remote
        assert seen(remote) == [text for text in texts if text != "turn 3"]
        [letter] = rt.dead_letters()
        assert (letter.backend, letter.seq, letter.reason) == ("fake", 4, "rejected")
        assert the_remote(await rt.status()).dead == 1
        assert len(await rt.recall("turn 3")) > 0  # local has it all the same


async def test_one_poisoned_event_of_a_thousand_is_found_by_bisecting(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote(poisons=is_turn(617), outage=RemoteFault("transient"))
    async with opened(tmp_path, remote) as rt:
        texts = say(rt, 1000)
        remote.outage = None
        assert (await rt.drain(600)).remote
        assert seen(remote) == [text for text in texts if text != "turn 617"]
        assert [letter.seq for letter in rt.dead_letters()] == [618]
        assert len(remote.received) == 999
        assert remote.calls < 40


async def test_a_whole_call_refused_once_loses_nothing_by_bisecting(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote(outage=RemoteFault("transient"), plan=[RemoteFault("permanent")])
    async with opened(tmp_path, remote) as rt:
        texts = say(rt, 20)
        remote.outage = None
        assert (await rt.drain(600)).remote
        assert seen(remote) == texts
        assert not rt.dead_letters()


# -- what is in doubt --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["applied", "lost", "hang", "gap"])
async def test_a_write_in_doubt_is_sent_again_and_read_once(tmp_path: Path, autojump_clock: MockClock, fault: Any) -> None:
    remote = FakeRemote(plan=[RemoteFault(fault)])
    async with opened(tmp_path, remote) as rt:
        texts = say(rt, 30)
        await eventually(lambda: remote.calls > 0)
        autojump_clock.jump(60)  # a call that hangs is given up after a minute
        assert (await rt.drain(600)).remote
        assert seen(remote) == texts
        assert (len(remote.received) > 30) == (fault == "applied")


async def test_faults_in_any_order_lose_and_double_nothing(tmp_path: Path, autojump_clock: MockClock) -> None:
    names = itertools.islice(itertools.cycle(["applied", "slow", "lost", "transient", "gap"]), 20)
    remote = FakeRemote(plan=[RemoteFault(name, 0.2) for name in names])  # type: ignore[arg-type]
    async with opened(tmp_path, remote, delivery={"batch_events": 7, "backoff_min": 0.1, "backoff_max": 0.2}) as rt:
        texts: list[str] = []
        for _ in range(10):
            texts += say(rt, 11, len(texts))
            await trio.sleep(0.3)
        assert (await rt.drain(3600)).remote
        assert seen(remote) == texts


async def test_another_epoch_sends_everything_again_and_readers_see_it_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote()
    async with opened(tmp_path, remote) as rt:
        texts = say(rt, 25)
        assert (await rt.drain(60)).remote
    log = connect(open_profile(tmp_path, "default").directory / "log.db", Options())
    log.run("UPDATE log SET epoch = 'another'")
    log.close()
    async with opened(tmp_path, remote) as rt:
        assert (await rt.drain(60)).remote
        assert (len(remote.received), seen(remote)) == (50, texts)


# -- backlog, status, shutdown -----------------------------------------------------------------------------------------------------


async def test_status_shows_backlog_age_degradation_and_recovery(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote(outage=RemoteFault("transient"))
    async with opened(tmp_path, remote) as rt:
        rt.sync_turn("an old one", "ok")
        say(rt, 4)
        await trio.sleep(5)
        down = the_remote(await rt.status())
        assert (down.state, down.backlog, down.last_error) == ("degraded", 5, "BackendTransient")
        assert down.oldest_age > 0 and down.degraded_since is not None and down.recovered_at is None
        assert (await rt.status()).state == "degraded"
        remote.outage = None
        assert (await rt.drain(600)).remote
        up = the_remote(await rt.status())
        assert (up.state, up.backlog, up.oldest_age, up.degraded_since) == ("ok", 0, 0.0, None)
        assert up.recovered_at is not None and up.recovered == 5
        assert (await rt.status()).state == "ok"


@pytest.mark.parametrize("fault", ["transient", "hang"])
async def test_shutdown_keeps_a_backlog_for_the_next_open(tmp_path: Path, autojump_clock: MockClock, fault: Any) -> None:
    remote = FakeRemote()
    async with opened(tmp_path, remote) as rt:
        texts = say(rt, 10)
        assert (await rt.drain(60)).remote
        remote.outage = RemoteFault(fault)
        texts += say(rt, 20, 10)
        drained = await rt.drain(5)
        assert (drained.local, drained.remote) == (True, False)
    remote.outage = None
    async with opened(tmp_path, remote) as rt:
        assert (await rt.drain(60)).remote
        assert seen(remote) == texts


@contextmanager
def traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


async def test_memory_does_not_grow_with_the_backlog(tmp_path: Path, autojump_clock: MockClock) -> None:
    grown: list[int] = []
    for count in (1_000, 100_000):
        home = tmp_path / str(count)
        fill(home, count)
        remote = FakeRemote(outage=RemoteFault("transient"))
        async with opened(home, remote) as rt:
            assert await rt.catch_up(3600) == 0
            with traced():
                await trio.sleep(3)
                grown.append(tracemalloc.get_traced_memory()[1])
            assert the_remote(await rt.status()).backlog == count
    assert grown[1] < grown[0] + 1_000_000


def fill(home: Path, count: int) -> None:
    """A log of ``count`` marks, copied inside the database from one that the journal wrote."""
    profile = open_profile(home, "default")
    journal = Journal(profile, Limits())
    scope = memoryd.Scope(user="ada", session="s1")
    journal.append(memoryd.core.SessionMark(memoryd.core.new_event_id(), scope, 1, "start"))
    journal.close()
    log = connect(profile.directory / "log.db", Options())
    log.run(
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        "INSERT INTO event (event_id, at, kind, payload) SELECT randomblob(16), at, kind, payload FROM n, event WHERE seq = 1",
        (count,),
    )
    log.close()


# -- mirrors and a remote primary --------------------------------------------------------------------------------------------------


async def test_every_mirror_gets_everything_at_its_own_pace(tmp_path: Path, autojump_clock: MockClock) -> None:
    quick, slow = FakeRemote("quick"), FakeRemote("slow", plan=[RemoteFault("slow", 5.0), RemoteFault("transient")])
    with registered("quick", lambda context: quick), registered("slow", lambda context: slow), memoryd.scope(user="ada", session="s1"):
        async with memoryd.open_runtime(tmp_path, config={"mirrors": ["quick", "slow"], **QUIET}) as rt:
            texts = say(rt, 50)
            await eventually(lambda: seen(quick) == texts)
            await rt.store("city", "Oslo")
            assert (await rt.drain(3600)).remote
            assert seen(quick) == seen(slow) == texts
            assert await quick.list_keys("ada") == await slow.list_keys("ada") == ["city"]


async def test_a_remote_primary_answers_first(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote()
    async with opened(tmp_path, remote, backend="fake", mirrors=[]) as rt:
        say(rt, 3)
        assert (await rt.store("city", "Oslo")).applied
        answer = await rt.recall("turn 1")
        assert (answer.source, answer.stale) == ("fake", False)


@pytest.mark.parametrize("fault", ["transient", "permanent", "lost", "hang", "slow"])
async def test_local_answers_for_a_primary_that_is_down_or_slow(tmp_path: Path, autojump_clock: MockClock, fault: Any) -> None:
    remote = FakeRemote()
    async with opened(tmp_path, remote, backend="fake", mirrors=[]) as rt:
        say(rt, 3)
        assert (await rt.drain(60)).remote
        remote.outage = RemoteFault(fault, 100.0)
        answer = await rt.recall("turn 1")
        assert (answer.source, answer.stale, answer.behind) == ("local", True, 0)
        assert "turn 1" in [hit.text for hit in answer]


async def test_a_bug_of_the_primarys_adapter_does_not_break_a_turn(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote()
    with registered("fake", lambda context: remote), memoryd.scope(user="ada", session="s1"):
        async with memoryd.open_runtime(tmp_path, config=REMOTE, on_bug="contain") as rt:
            say(rt, 3)
            assert (await rt.drain(60)).remote
            remote.outage = RemoteFault("bug")
            answer = await rt.recall("turn 1")
            assert (answer.source, answer.stale) == ("local", True)
            assert the_remote(await rt.status()).last_error == "ZeroDivisionError"


async def test_local_answers_for_a_primary_that_is_behind_the_callers_last_write(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote(plan=[RemoteFault("transient", 5.0)])
    async with opened(tmp_path, remote, backend="fake", mirrors=[]) as rt:
        say(rt, 3)
        answer = await rt.recall("turn 2")
        assert (answer.source, answer.stale) == ("local", True)
        assert "turn 2" in [hit.text for hit in answer]
        stored = await rt.store("city", "Oslo")
        assert (stored.accepted.state, stored.applied) == ("journaled", False)
        assert (await rt.drain(600)).remote
        assert (await rt.recall("turn 2")).source == "fake"


async def test_a_forgotten_turn_is_forgotten_by_the_remote_too(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote()
    async with opened(tmp_path, remote) as rt:
        first = rt.sync_turn("zebra", "ok")
        say(rt, 2)
        assert (await rt.drain(60)).remote
        await rt.forget(first.event_id)
        assert (await rt.drain(60)).remote
        assert seen(remote) == ["turn 0", "turn 1"]
