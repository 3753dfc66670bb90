"""Forgetting and correcting at a server that deletes no message: what has to go goes, what stays stays once, also after interruptions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

from memoryd.core import OK, Entry, Query
from memoryd.testing.honcho import Fault, FaultName, HonchoServer
from memoryd_honcho import HonchoBackend
from tests.adapters.honcho.conftest import Log, opened


def contents(honcho: HonchoServer) -> list[str]:
    return [message["content"] for message in honcho.messages()]


async def test_a_turn_is_erased_and_the_others_stay(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    kept, gone, other = log.turn("keep me", "yes"), log.turn("the secret plan", "understood"), log.turn("and me", "too", session="s2")
    await backend.apply([kept, gone, other])
    before = honcho.space.sessions.copy()
    assert list(await backend.apply([log.forget(gone)])) == [OK]
    assert sorted(contents(honcho)) == ["and me", "keep me", "too", "yes"]
    assert "plan" not in str(honcho.space)
    assert [hit.id for hit in await backend.recall(Query("ann", "keep"))][0] == kept.event.event_id.hex()
    ended = before.keys() - honcho.space.sessions.keys()
    assert len(ended) == 1
    assert set(await backend.apply([log.turn("later", "words")])) == {OK}
    assert ended.isdisjoint(honcho.space.sessions), "the id of a deleted session is never used again"
    assert contents(honcho)[-2:] == ["later", "words"]


async def test_a_session_is_erased_whole_and_goes_on_anew(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entries = [log.turn(f"private {n}", "aha") for n in range(3)]
    await backend.apply([*entries, log.turn("elsewhere", "ok", session="s2")])
    forget = log.forget(*entries, sessions=("s1",))
    assert list(await backend.apply([forget])) == [OK]
    assert contents(honcho) == ["elsewhere", "ok"]
    later = log.turn("a fresh start", "indeed")
    await backend.apply([later])
    assert list(await backend.apply([forget])) == [OK]
    assert sorted(contents(honcho)) == ["a fresh start", "elsewhere", "indeed", "ok"]
    async with opened(honcho.url) as other:  # a repeat from another process spares what came later, too
        assert list(await other.apply([forget])) == [OK]
    assert len(contents(honcho)) == 4


async def test_what_comes_again_after_it_was_erased_goes_again(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    gone, kept = log.turn("gone", "away"), log.turn("kept", "here")
    forget = log.forget(gone)
    for _ in range(3):
        assert set(await backend.apply([gone, kept, forget])) == {OK}
        assert contents(honcho) == ["kept", "here"]


async def test_memories_are_erased(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    gone, kept = log.write("plan", "rob the bank"), log.write("city", "Oslo")
    await backend.apply([gone, kept])
    assert list(await backend.apply([log.forget(gone)])) == [OK]
    assert await backend.list_keys("ann") == ["city"]
    assert "bank" not in str(honcho.space)
    assert list(await backend.apply([gone])) == [OK]
    assert await backend.list_keys("ann") == ["city"]


async def test_without_a_worker_what_was_erased_is_not_found(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    """The server keeps messages of a deleted session readable until its worker comes by."""
    honcho.modes.worker = False
    kept, gone = log.turn("zebra stays", "ok"), log.turn("zebra secret", "psst")
    await backend.apply([kept, gone])
    await backend.apply([log.forget(gone)])
    assert "zebra secret" in contents(honcho)
    for session in (None, "s1"):
        hits = await backend.recall(Query("ann", "zebra", session=session))
        assert [hit.text for hit in hits] == ["zebra stays"]
    honcho.erase_deleted()
    assert sorted(contents(honcho)) == ["ok", "zebra stays"]


async def test_only_the_users_own_goes(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    mine, theirs = log.turn("mine", "a"), log.turn("theirs", "b", of="bob")
    await backend.apply([mine, theirs])
    await backend.apply([log.forget(mine, theirs, sessions=("s1",))])
    assert contents(honcho) == ["theirs", "b"]


async def test_forgetting_what_never_arrived_is_no_error(backend: HonchoBackend, log: Log) -> None:
    assert list(await backend.apply([log.forget(log.turn("never", "sent"), sessions=("s1", "s9"))])) == [OK]


async def test_a_correction_replaces_the_text(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entries = [log.turn(f"question {n}", f"answer {n}") for n in range(3)]
    await backend.apply(entries)
    edit = log.edit(entries[1], user="a better question " * 1000)
    assert list(await backend.apply([edit])) == [OK]
    assert "question 1" not in contents(honcho)
    hit, *_ = await backend.recall(Query("ann", "better question", limit=1))
    assert (hit.id, hit.text) == (entries[1].event.event_id.hex(), "a better question " * 1000)
    assert contents(honcho)[:2] == ["question 0", "answer 0"]
    assert contents(honcho)[-3:] == ["answer 1", "question 2", "answer 2"]
    count = honcho.count("add_messages")
    assert list(await backend.apply([edit])) == [OK]
    assert honcho.count("add_messages") == count, "the same correction again changes nothing"
    await backend.apply([log.edit(entries[2], assistant="", user="only this")])
    assert contents(honcho)[-1] == "only this"


async def test_a_correction_that_leaves_nothing(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entry, other = log.turn("all of it"), log.turn("other")
    await backend.apply([entry, other, log.edit(entry, user="")])
    assert contents(honcho) == ["other"]


async def test_copies_are_not_copied(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    honcho.faults.append(Fault("twice", on="add_messages"))
    kept, gone = log.turn("kept", "here"), log.turn("gone", "away")
    await backend.apply([kept, gone])
    await backend.apply([log.forget(gone)])
    assert contents(honcho) == ["kept", "here"]


async def test_a_deadline_that_cuts_it_off_again_and_again(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    """A user with many sessions: each try goes on where the one before was cut off."""
    turns = [log.turn(f"turn {n}", session=f"s{n}") for n in range(60)]
    await backend.apply(turns)
    forget = log.forget(*turns, sessions=tuple(f"s{n}" for n in range(0, 60, 2)))
    honcho.modes.latency = 0.002
    outcomes: Sequence[object] = ()
    for tries in range(200):
        with trio.move_on_after(0.1 + 0.005 * tries):  # longer each time: a slow machine must get there too
            outcomes = await backend.apply([forget])
            break
    assert list(outcomes) == [OK]
    with trio.fail_after(10):  # a request that was cut off may still be on its way through the server
        while contents(honcho):
            await trio.sleep(0.02)


async def test_a_correction_of_what_is_gone_is_no_error(backend: HonchoBackend, honcho: HonchoServer, log: Log) -> None:
    entry = log.turn("away", "soon")
    await backend.apply([entry])
    await backend.apply([log.forget(entry), log.edit(entry, user="back")])
    assert contents(honcho) == []


CHANGES = ["forget", "session", "edit"]


def prepared(log: Log, change: str) -> tuple[Sequence[Entry], Entry, list[str]]:
    """Turns, a change of them, and what is left after it."""
    turns = [log.turn(f"u{n}", f"a{n}", session="s1" if n < 6 else "s2") for n in range(8)]
    memory = log.write("key", "value")
    if change == "forget":
        return [*turns, memory], log.forget(turns[1], turns[7], memory), ["u0", "a0", *(f"{r}{n}" for n in range(2, 7) for r in "ua")]
    if change == "session":
        return [*turns, memory], log.forget(*turns[:6], sessions=("s1",)), ["u6", "a6", "u7", "a7"]
    return [*turns, memory], log.edit(turns[1], user="edited"), ["u0", "a0", "edited", "a1", *(f"{r}{n}" for n in range(2, 8) for r in "ua")]


@pytest.mark.parametrize("change", CHANGES)
async def test_an_interruption_anywhere_does_no_harm(change: str) -> None:
    """The n-th request of the change is lost, or its answer is, for every n; tried again, all is as if nothing had happened."""
    names: tuple[FaultName, ...] = ("lost", "reset")
    for name in names:
        number = 0
        interrupted = True
        while interrupted:
            interrupted = await _interrupted(change, name, number)
            number += 3 if change == "session" else 2  # that one is long
        assert number > 6


async def _interrupted(change: str, name: FaultName, number: int) -> bool:
    """Whether the change was long enough to meet the fault."""
    log = Log()
    turns, event, left = prepared(log, change)
    with HonchoServer() as honcho:
        async with opened(honcho.url) as backend:
            assert set(await backend.apply(turns)) == {OK}
            # reads are tried once more by themselves: two in a row fail it
            honcho.faults.append(Fault(name, skip=number, times=2))
            outcomes = await backend.apply([event])
            met = not honcho.faults or honcho.faults[0].times == 1
            honcho.faults.clear()
            assert outcomes[0].kind in ("ok", "transient", "ambiguous")
        async with opened(honcho.url) as other:  # the next process finds what the first one left
            assert list(await other.apply([event])) == [OK]
            assert list(await other.apply([event])) == [OK]
            assert sorted(contents(honcho)) == sorted(left)
            assert (await other.list_keys("ann")) == ([] if change == "forget" else ["key"])
    return met
