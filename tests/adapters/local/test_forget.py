"""Forgetting: what was forgotten is in no answer, no history and no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.core import Outcome, Scope, Turn, new_event_id
from tests.adapters.local.conftest import Local, Log

WORDS = (b"zanzibar", b"quokka", b"halibut", b"teakettle")


def files_with(home: Path, word: bytes) -> list[str]:
    spellings = (word, word.upper(), word.hex().encode())
    return [path.name for path in home.rglob("*") if path.is_file() and any(one in path.read_bytes() for one in spellings)]


async def test_a_turn_a_memory_and_an_edit_leave_no_byte(local: Local) -> None:
    for number in range(300):
        await local.turn(f"filler {number} about nothing", session="filler")
    turn = await local.turn("the zanzibar plan", "with quokka")
    edited = await local.turn("harmless", "harmless too")
    edit = await local.edit(edited, user="now halibut")
    memory = await local.write("animal", "teakettle")
    assert all(files_with(local.path, word) for word in WORDS)
    await local.forget(turn, memory, edited, edit)
    for word in WORDS:
        assert await local.found(word.decode()) == []
    assert await local.backend.history("ada", "animal") == []
    await local.backend.erase_traces()
    await local.backend.aclose()
    assert {word: files_with(local.path, word) for word in WORDS} == {word: [] for word in WORDS}


@pytest.mark.parametrize("batches", [1, 2, 5, 17, 40])
async def test_no_byte_is_left_whatever_the_index_consists_of(local: Local, batches: int) -> None:
    """One segment or many, in the middle of them, at their end."""
    targets = []
    for number in range(batches):
        await local.turn(f"filler {number} " + " ".join(f"word{number}x{n}" for n in range(200)), session=f"f{number}")
        if number in (0, batches // 2, batches - 1):
            targets.append(await local.turn(f"the zanzibar plan {number}", "quokka"))
    await local.forget(*targets)
    await local.backend.erase_traces()
    await local.backend.check_index()
    await local.backend.aclose()
    assert {word: files_with(local.path, word) for word in WORDS[:2]} == {word: [] for word in WORDS[:2]}


async def test_a_large_forget_goes_whole(local: Local) -> None:
    entries = [local.log.add(Turn(new_event_id(), Scope(user="ada", session="s1"), 1, f"plenty {n}", "")) for n in range(1500)]
    await local.backend.apply(entries)
    kept = await local.turn("plenty kept")
    await local.forget(*entries)
    assert [hit.id for hit in await local.recall("plenty", limit=1000)] == [kept.event.event_id.hex()]
    assert dict(await local.backend.counts())["turns"] == 1


async def test_forgetting_an_edit_brings_the_original_back(local: Local) -> None:
    turn = await local.turn("original words", "answer")
    first = await local.edit(turn, user="first correction")
    await local.edit(turn, assistant="second correction")
    await local.forget(first)
    assert await local.found("original") == ["original words"]
    assert await local.found("second") == ["second correction"]
    assert await local.found("first") == []


async def test_forgetting_the_current_value_leaves_the_one_before(local: Local) -> None:
    await local.write("k", "older")
    newer = await local.write("k", "newer")
    await local.forget(newer)
    memory = await local.backend.retrieve("ada", "k")
    assert memory is not None
    assert memory.value == "older"
    assert [(one.value, one.valid_until) for one in await local.backend.history("ada", "k")] == [("older", None)]


async def test_forgetting_a_deletion_or_a_first_value(local: Local) -> None:
    first = await local.write("k", "first")
    second = await local.write("k", "second")
    deletion = await local.delete("k")
    await local.forget(first)
    assert [one.value for one in await local.backend.history("ada", "k")] == ["second"]
    await local.forget(deletion)
    memory = await local.backend.retrieve("ada", "k")
    assert memory is not None
    assert (memory.value, memory.id) == ("second", second.event.event_id.hex())


async def test_a_session_goes_whole(local: Local) -> None:
    await local.turn("gone one", "gone two", session="gone")
    await local.turn("stays", session="stays")
    await local.forget(sessions=("gone",))
    assert await local.found("gone") == []
    assert await local.found("stays") == ["stays"]
    assert dict(await local.backend.counts()) == {"turns": 1, "memories": 0, "sessions": 1}


async def test_a_session_of_another_user_stays(local: Local) -> None:
    await local.turn("ada said", session="shared")
    await local.turn("bob said", session="shared", user="bob")
    await local.forget(sessions=("shared",))
    assert await local.found("said", user="bob") == ["bob said"]
    assert await local.found("said") == []


async def test_a_user_of_whom_nothing_is_left_is_forgotten_by_name(local: Local) -> None:
    turn = await local.turn("hello", user="unusualname", session="s")
    await local.forget(turn, sessions=("s",), user="unusualname")
    await local.backend.erase_traces()
    await local.backend.aclose()
    assert files_with(local.path, b"unusualname") == []


async def test_forgotten_lines_no_longer_count(local: Local) -> None:
    """A word that only forgotten texts had is as rare as before them."""
    kept = await local.turn("rare word")
    before = (await local.recall("rare word"))[0].score
    turns = [await local.turn(f"rare word {number}", session="x") for number in range(20)]
    await local.forget(*turns, sessions=("x",))
    after = await local.recall("rare word")
    assert [(hit.id, hit.score) for hit in after] == [(kept.event.event_id.hex(), pytest.approx(before))]


async def test_the_same_words_said_again_are_new(local: Local) -> None:
    await local.forget(await local.turn("again"))
    assert await local.found("again") == []
    await local.turn("again")
    assert await local.found("again") == ["again"]


async def test_forgetting_what_is_not_there_is_no_error(local: Local) -> None:
    turn = await local.turn("something")
    await local.forget(turn)
    await local.forget(turn)
    assert await local.found("something") == []


async def test_projecting_anew_after_forgetting_gives_the_same(local: Local) -> None:
    turn = await local.turn("to be forgotten")
    await local.turn("kept text")
    await local.write("k", "v")
    await local.forget(turn)
    again: Log = local.log.again("second")
    assert await local.backend.apply(again.entries) == [Outcome("ok")] * 4
    assert await local.found("forgotten") == []
    assert await local.found("kept text") == ["kept text"]
    assert await local.backend.list_keys("ada") == ["k"]
