"""Projection: once, in order, by id, whatever is sent and how often."""

from __future__ import annotations

import pytest

from memoryd.core import Cursor, Entry, Erased, Outcome, Scope, SessionMark, Turn, new_event_id
from tests.adapters.local.conftest import Local, Log

OK, SCOPE = Outcome("ok"), Scope(user="ada", session="s1")


def turn(text: str, answer: str = "") -> Turn:
    return Turn(new_event_id(), SCOPE, 1, text, answer)


async def test_a_fresh_store_is_nowhere(local: Local) -> None:
    assert await local.backend.position() == Cursor("", 0)


async def test_what_is_sent_again_is_skipped(local: Local) -> None:
    log = Log()
    entries = [log.add(turn(f"word{number} here")) for number in range(5)]
    for start in range(5):
        assert await local.backend.apply(entries[start:]) == [OK] * (5 - start) or start
    assert await local.backend.apply(entries) == [OK] * 5
    assert await local.backend.position() == Cursor("first", 5)
    assert (await local.backend.counts())["turns"] == 5
    assert len(await local.recall("word3")) == 1


async def test_a_hole_is_a_gap_and_nothing_after_it_is_applied(local: Local) -> None:
    log = Log()
    entries = [log.add(turn(f"word{number}")) for number in range(5)]
    outcomes = await local.backend.apply([entries[0], entries[2], entries[3]])
    assert [outcome.kind for outcome in outcomes] == ["ok", "gap", "gap"]
    assert await local.backend.position() == Cursor("first", 1)
    assert await local.backend.apply(entries[1:]) == [OK] * 4


async def test_a_batch_beyond_one_transaction_is_applied_whole(local: Local) -> None:
    log = Log()
    entries = [log.add(turn(f"common w{number}", "answer")) for number in range(700)]
    assert await local.backend.apply(entries) == [OK] * 700
    assert (await local.backend.counts())["turns"] == 700
    assert [hit.text for hit in await local.recall("w699")] == ["common w699"]


async def test_another_epoch_is_reprojected_by_id(local: Local) -> None:
    log = Log()
    entries = [log.add(turn(f"word{number}")) for number in range(3)]
    await local.backend.apply(entries)
    second = log.again("second")
    second.add(turn("word9"))
    gap = await local.backend.apply(second.entries[2:])
    assert {outcome.kind for outcome in gap} == {"gap"}
    assert await local.backend.position() == Cursor("first", 3)
    assert await local.backend.apply(second.entries) == [OK] * 4
    assert await local.backend.position() == Cursor("second", 4)
    assert (await local.backend.counts())["turns"] == 4
    assert [hit.seq for hit in await local.recall("word9")] == [4]


async def test_an_event_that_the_new_log_erased_goes(local: Local) -> None:
    log = Log()
    first, second = log.add(turn("secret one")), log.add(turn("open two"))
    await local.backend.apply([first, second])
    renewed = Log("second")
    renewed.add(Erased(first.event.event_id, 1))
    renewed.add(second.event)
    assert await local.backend.apply(renewed.entries) == [OK, OK]
    assert await local.found("secret") == []
    assert await local.found("open") == ["open two"]


async def test_the_same_event_under_two_numbers_counts_once(local: Local) -> None:
    event = turn("only once")
    log = Log()
    assert await local.backend.apply([log.add(event), log.add(event)]) == [OK, OK]
    assert await local.backend.apply([log.add(event)]) == [OK]
    assert (await local.backend.counts())["turns"] == 1


async def test_an_event_without_a_user_is_permanent_and_the_rest_goes_on(local: Local) -> None:
    log = Log()
    nobody = log.add(Turn(new_event_id(), Scope(session="s"), 1, "lost", ""))
    outcomes = await local.backend.apply([nobody, log.add(turn("kept"))])
    assert [outcome.kind for outcome in outcomes] == ["permanent", "ok"]
    assert await local.found("kept") == ["kept"]


async def test_order_is_acceptance_order_whatever_the_clock_says(local: Local) -> None:
    entries = [local.log.add(Turn(new_event_id(), SCOPE, 7200_000_000 - number, "same words", f"n{number}")) for number in range(50)]
    await local.backend.apply(entries)
    hits = await local.recall("n0 n1 n2 n3 n4", limit=100)
    assert len({hit.seq for hit in hits}) == len(hits)
    newest = await local.recall("same words", limit=3)
    assert newest[0].copies == 50


async def test_a_session_exists_from_its_first_event(local: Local) -> None:
    await local.apply(SessionMark(new_event_id(), Scope(user="ada", session="new"), 1, "start", {"a": 1}))
    assert (await local.backend.counts())["sessions"] == 1
    await local.turn("hello there", session="other")
    assert (await local.backend.counts())["sessions"] == 2


@pytest.mark.parametrize("text", ["\x00", "a\x00" * 3000, "\ud83d", "\udc88\ud83d", "\U0010ffff", "é" * 5000, " ", "x" * 2_000_000])
async def test_any_text_is_kept_as_given(local: Local, text: str) -> None:
    entry = await local.turn(text + " findable", turn_id=text[:400] or None)
    hit = (await local.recall("findable"))[0]
    assert hit.text == text + " findable"
    assert hit.turn_id == (text[:400] or None)
    assert await local.backend.find("ada", entry.event.event_id.hex()) is not None


@pytest.mark.parametrize("name", ["\ud83d", "a\x00b", "x" * 500, "ünï 文字 'quote\" --", "\n"])
async def test_names_of_any_characters(local: Local, name: str) -> None:
    await local.turn("some text", user=name, session=name, agent=name, workspace=name, platform=name)
    await local.write(name, "value of key", user=name)
    hit = (await local.recall("text", user=name))[0]
    assert (hit.session, hit.labels) == (name, {"agent": name, "workspace": name, "platform": name})
    assert await local.backend.list_keys(name) == [name]


async def test_rebuild_empties_and_the_log_fills_again(local: Local) -> None:
    await local.turn("first words")
    await local.write("k", "v")
    await local.backend.rebuild()
    assert dict(await local.backend.counts()) == {"turns": 0, "memories": 0, "sessions": 0}
    assert await local.backend.position() == Cursor("", 0)
    assert await local.backend.apply(local.log.entries) == [OK, OK]
    assert await local.found("first") == ["first words"]


async def test_entries_of_one_batch_see_each_other(local: Local) -> None:
    log = local.log
    event = turn("before")
    entries: list[Entry] = [log.add(event)]
    await local.backend.apply(entries)
    await local.edit(entries[0], user="after")
    assert await local.found("after") == ["after"]
    assert await local.found("before") == []
