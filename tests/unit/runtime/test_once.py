"""A call that a client sends again makes its event once: in this process, and where the first one was killed."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

import memoryd
from memoryd.core import GivenEvent, bind_event, new_event_id
from memoryd.store import Options, connect, open_profile


async def test_a_call_with_the_same_event_id_is_one_event(tmp_path: Path) -> None:
    first, second = new_event_id(), new_event_id()
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s"):
            with bind_event(GivenEvent(first)):
                accepted = rt.sync_turn("zebra", "ok")
                assert (accepted.state, accepted.event_id) == ("journaled", first.hex())
                assert rt.sync_turn("zebra", "ok") == accepted
            with bind_event(GivenEvent(second)):
                stored = await rt.store("k", "v")
                assert await rt.store("k", "v") == stored
            await rt.drain()
            assert len(await rt.recall("zebra")) == 1
            assert len(await rt.history("k")) == 1


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_what_another_process_has_taken_is_found_in_the_log(tmp_path: Path, after: int) -> None:
    ids = [new_event_id() for _ in range(4)]
    with memoryd.scope(user="ada", session="s"):
        async with memoryd.open_runtime(tmp_path) as rt:
            rt.sync_turn("before", "ok")
            for n, event_id in enumerate(ids[:3]):
                with bind_event(GivenEvent(event_id)):
                    rt.sync_turn(f"zebra {n}", "ok")
        async with memoryd.open_runtime(tmp_path) as rt:
            for n, event_id in reversed(list(enumerate(ids))[after:]):
                with bind_event(GivenEvent(event_id, after)):
                    assert rt.sync_turn(f"zebra {n}", "ok").seq == (2 + n if n < 3 else 5)
            await rt.drain()
            assert len(await rt.recall("zebra")) == 4


async def test_what_was_held_is_told_when_it_is_on_disk(tmp_path: Path) -> None:
    event_id = new_event_id()
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s"), bind_event(GivenEvent(event_id)):
            other = connect(open_profile(tmp_path, "default").directory / "log.db", Options())
            with other.transaction("IMMEDIATE"):
                held = rt.sync_turn("zebra", "ok")
                assert held.state == "held" == rt.sync_turn("zebra", "ok").state
            other.close()
            settled = await rt.settled(held, 30)
            assert settled.state == "journaled"
            assert rt.sync_turn("zebra", "ok") == memoryd.Accepted("journaled", settled.seq, event_id.hex())


async def test_what_another_process_took_over_is_not_made_here_too(tmp_path: Path) -> None:
    """A daemon that stood still reads, when it goes on, what its client gave to another process meanwhile."""
    event_id = new_event_id()
    with memoryd.scope(user="ada", session="s"):
        async with memoryd.open_runtime(tmp_path) as stopped, memoryd.open_runtime(tmp_path) as other:
            with bind_event(GivenEvent(new_event_id())):
                stopped.sync_turn("before", "ok")
            await trio.sleep(0.1)  # it stands still
            with bind_event(GivenEvent(event_id, 0)):
                first = other.sync_turn("zebra", "ok")
            with bind_event(GivenEvent(event_id)):
                assert stopped.sync_turn("zebra", "ok") == first
