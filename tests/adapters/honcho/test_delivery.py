"""A whole runtime in front of a real HTTP server that has bad days: nothing is lost, readers see each event once, in order."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import trio

import memoryd
from memoryd.core import Entry, Status
from memoryd.testing import CrashChild, CrashServer
from memoryd.testing.honcho import Fault, HonchoServer
from memoryd_honcho import HonchoBackend
from tests.adapters.honcho.child_deliver import FAST, HONCHO
from tests.adapters.honcho.conftest import Log, opened

CHILD = Path(__file__).with_name("child_deliver.py")


@asynccontextmanager
async def running(home: Path, honcho: HonchoServer, role: str = "primary", **table: Any) -> AsyncIterator[memoryd.Runtime]:
    """A runtime whose primary or mirror is Honcho, in the scope of one user's session."""
    chosen: dict[str, Any] = {"backend": "honcho"} if role == "primary" else {"mirrors": ["honcho"]}
    config = {**FAST, **chosen, "backends": {"honcho": {"url": honcho.url, **HONCHO, **table}}}
    async with memoryd.open_runtime(home, config=config) as runtime:
        with memoryd.scope(user="ann", session="s"):
            yield runtime


def read(honcho: HonchoServer) -> dict[str, list[str]]:
    """What a reader sees of each session, in order: pieces once, whatever arrived twice."""
    seen: set[tuple[object, ...]] = set()
    found: dict[str, list[str]] = defaultdict(list)
    for message in honcho.messages():
        place = tuple(message["metadata"][field] for field in ("ev", "r", "i"))
        if place not in seen:
            seen.add(place)
            found[message["metadata"]["s"]].append(message["content"])
    return found


def said(count: int, session: str = "s") -> list[str]:
    return [f"{session} {kind} {number}" for number in range(count) for kind in ("question", "answer")]


def say(runtime: memoryd.Runtime, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        assert runtime.sync_turn(f"s question {number}", f"s answer {number}").state == "journaled"


def of(status: Status) -> Any:
    return next(backend for backend in status.backends if backend.name == "honcho")


async def eventually_arrived(honcho: HonchoServer, count: int) -> None:
    with trio.fail_after(60):
        while len(honcho.messages()) < count:
            await trio.sleep(0.02)


async def test_stopped_for_a_whole_session_then_started(private_home: Path, honcho: HonchoServer) -> None:
    honcho.stop()
    async with running(private_home, honcho) as runtime:
        say(runtime, 200)
        found = await runtime.recall("question 77")
        assert (found.stale, found.source) == (True, "local")
        assert found[0].text in ("s question 77", "s answer 77")
        with trio.fail_after(60):
            while of(await runtime.status()).degraded_since is None:
                await trio.sleep(0.02)
        status = of(await runtime.status())
        assert (status.backlog, status.last_error) == (200, "ConnectionError")
        assert status.oldest_age > 0
        honcho.start()
        assert (await runtime.drain(60)).remote
        status = of(await runtime.status())
        assert (status.backlog, status.degraded_since) == (0, None)
        assert status.recovered_at is not None
    assert read(honcho)["s"] == said(200)
    assert len(honcho.messages()) == 400


async def test_closed_with_a_backlog_it_is_sent_the_next_time(private_home: Path, honcho: HonchoServer) -> None:
    honcho.modes.database = False
    async with running(private_home, honcho) as runtime:
        say(runtime, 30)
    honcho.modes.database = True
    async with running(private_home, honcho) as runtime:
        say(runtime, 5, first=30)
        assert (await runtime.drain(60)).remote
    assert read(honcho)["s"] == said(35)


async def test_every_kind_of_bad_answer_on_the_way(private_home: Path, honcho: HonchoServer) -> None:
    names = ("lock", "lost", "reset", "twice", "half", "html", "empty", "status")
    honcho.faults += [Fault(name, on="add_messages", skip=2 * number) for number, name in enumerate(names)]  # type: ignore[arg-type]
    honcho.faults += [Fault("reset", on="list_messages", times=2), Fault("lock", on="list_sessions", skip=1)]
    async with running(private_home, honcho) as runtime:
        for start in range(0, 100, 5):
            say(runtime, 5, first=start)
            await runtime.drain(30)
        hits = await runtime.recall("question 42")
        assert len({hit.id for hit in hits}) == len(hits)
    assert not [fault for fault in honcho.faults if fault.on == "add_messages"]
    assert read(honcho)["s"] == said(100)


async def test_one_poisoned_turn_among_a_thousand(private_home: Path, honcho: HonchoServer) -> None:
    honcho.modes.refused["s question 612"] = 422
    config = {"delivery": {**FAST["delivery"], "batch_events": 100}}
    async with memoryd.open_runtime(
        private_home, config={**FAST, **config, "mirrors": ["honcho"], "backends": {"honcho": {"url": honcho.url, **HONCHO}}}
    ) as runtime:
        with memoryd.scope(user="ann", session="s"):
            say(runtime, 1000)
            assert (await runtime.drain(60)).remote
            assert of(await runtime.status()).dead == 1
    assert read(honcho)["s"] == [text for text in said(1000) if not text.endswith(" 612")]
    assert honcho.count("add_messages") < 100


async def test_a_server_that_hangs_delays_no_answer(private_home: Path, honcho: HonchoServer) -> None:
    async with running(private_home, honcho) as runtime:
        say(runtime, 10)
        assert (await runtime.drain(30)).remote
        assert (await runtime.recall("question 3")).source == "honcho"
        honcho.faults.append(Fault("hang", times=1000))
        found = await runtime.recall("question 3")
        assert (found.source, found.stale) == ("local", True)
        say(runtime, 50, first=10)
        assert (await runtime.retrieve("nothing")) is None
        honcho.faults.clear()
        honcho.release()
        assert (await runtime.drain(60)).remote
    assert read(honcho)["s"] == said(60)


async def test_memories_corrections_and_forgetting_arrive(private_home: Path, honcho: HonchoServer) -> None:
    async with running(private_home, honcho) as runtime:
        assert (await runtime.store("city", "Oslo")).applied
        assert (await runtime.store("food", "a secret recipe")).applied
        gone = runtime.sync_turn("the zebra's secret name", "understood")
        kept = runtime.sync_turn("the zebra's age is five", "noted")
        assert (await runtime.drain(30)).remote
        await runtime.edit(kept.event_id, user="the zebra's age is six")
        await runtime.forget(id=gone.event_id)
        await runtime.forget(key="food")
        assert (await runtime.drain(30)).remote
        assert [hit.text for hit in await runtime.recall("zebra") if hit.kind == "turn"] == ["the zebra's age is six"]
    assert "secret" not in str(honcho.space)


# -- killed -----------------------------------------------------------------------------------------------------------------


async def test_cut_off_in_mid_batch_fifty_times(honcho: HonchoServer, log: Log) -> None:
    """What a server sees of a killed client: requests without an end, and answers that nobody reads."""
    random = Random(7)
    entries = [log.turn(f"u{number}", f"a{number}", session="s") for number in range(300)]
    done = 0
    for _ in range(50):
        async with opened(honcho.url) as backend:
            with trio.move_on_after(random.uniform(0.0, 0.08)):
                while done < len(entries):
                    done += await _applied(backend, entries[done : done + 10])
    async with opened(honcho.url) as backend:
        while done < len(entries):
            done += await _applied(backend, entries[done : done + 100])
    assert read(honcho)["s"] == [f"{role}{number}" for number in range(300) for role in "ua"]


async def _applied(backend: HonchoBackend, entries: list[Entry]) -> int:
    outcomes = await backend.apply(entries)
    return len(list(itertools.takewhile(lambda outcome: outcome.kind == "ok", outcomes)))


async def test_killed_for_real_fifty_times(private_home: Path, honcho: HonchoServer) -> None:
    random = Random(11)
    first = 0
    with CrashServer(CHILD) as server:
        for _ in range(50):
            with server.child(private_home, "s", str(first), env={"HONCHO_URL": honcho.url}) as child:
                before = len(honcho.messages())
                await trio.to_thread.run_sync(child.wait_for, 3)
                await eventually_arrived(honcho, before + 10)
                await trio.sleep(random.uniform(0, 0.05))
                lines = child.kill()
            first = 1 + max(int(line.split()[0]) for line in lines)
    async with running(private_home, honcho, "mirror") as runtime:
        # a turn may have been journaled whose line was not written whole: it is known by its own id
        runtime.sync_turn(f"s question {first}", f"s answer {first}", turn_id=f"s-{first}")
        assert (await runtime.drain(60)).remote
    found = read(honcho)["s"]
    assert len(found) == len(set(found))
    assert [text for text in found if text in set(said(first + 1))] == said(first + 1)


async def test_two_processes_of_one_profile(private_home: Path, honcho: HonchoServer) -> None:
    async with running(private_home, honcho, "mirror") as runtime:
        with CrashChild([CHILD, private_home, "other", "0"], env={"HONCHO_URL": honcho.url}) as child:
            for number in range(0, 60, 3):
                say(runtime, 3, first=number)
                await trio.sleep(0.02)
            await trio.to_thread.run_sync(child.wait_for, 30)
            lines = child.kill()
        with trio.fail_after(60):
            while of(await runtime.status()).backlog:
                await trio.sleep(0.05)
    found = read(honcho)
    assert found["s"] == said(60)
    assert found["other"][: 2 * len(lines)] == said(len(lines), "other")
