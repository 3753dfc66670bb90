"""Recall: what is found, how it is shown, what it never shows."""

from __future__ import annotations

import pytest

from memoryd.core import from_micros
from tests.adapters.local.conftest import SECOND, Local


async def test_the_two_texts_of_a_turn_are_one_hit_in_its_better_text(local: Local) -> None:
    entry = await local.turn("where is the passport", "the passport is in the blue drawer", turn_id="t-1", agent="kim")
    hits = await local.recall("passport in which drawer")
    assert [(hit.id, hit.role, hit.text) for hit in hits] == [
        (entry.event.event_id.hex(), "assistant", "the passport is in the blue drawer")
    ]
    assert (hits[0].kind, hits[0].source, hits[0].turn_id, hits[0].seq) == ("turn", "local:turn", "t-1", entry.seq)
    assert hits[0].why["terms"] > 0
    assert hits[0].labels == {"agent": "kim"}


async def test_a_fact_said_nine_times_is_one_hit_with_a_count(local: Local) -> None:
    for number in range(9):
        await local.turn("I live in  Lisbon" if number % 2 else "i live in lisbon", session=f"s{number}")
    hits = await local.recall("where do I live: Lisbon?")
    assert [(hit.copies, hit.text.casefold().split()) for hit in hits] == [(9, ["i", "live", "in", "lisbon"])]


async def test_the_newest_value_comes_first_and_the_older_is_marked(local: Local) -> None:
    """A strong match of the stale value does not bring it before the new one."""
    await local.write("ssh", "the ssh port of the ssh server is port 22", at=10 * SECOND)
    await local.write("ssh", "49222", at=20 * SECOND)
    hits = await local.recall("ssh port")
    assert [(hit.text[-5:], hit.superseded, hit.valid_until) for hit in hits] == [
        ("49222", False, None), ("rt 22", True, from_micros(20 * SECOND))
    ]
    assert len({hit.id for hit in hits}) == 1
    then = await local.recall("ssh port", as_of=15 * SECOND)
    assert [(hit.text[-5:], hit.superseded) for hit in then] == [("rt 22", False)]
    assert await local.recall("ssh port", as_of=5 * SECOND) == []


async def test_a_query_that_only_the_old_value_answers_shows_the_current_one_before_it(local: Local) -> None:
    await local.write("colour", "teal")
    await local.write("colour", "navy")
    assert [(hit.text, hit.superseded) for hit in await local.recall("teal")] == [("navy", False), ("teal", True)]


async def test_a_value_stored_again_is_one_hit(local: Local) -> None:
    for _ in range(3):
        await local.write("city", "Lisbon")
    hits = await local.recall("Lisbon")
    assert [(hit.text, hit.superseded, hit.copies) for hit in hits] == [("Lisbon", False, 3)]


async def test_memories_and_turns_are_one_list(local: Local) -> None:
    await local.turn("my sister Nora plays the cello")
    await local.write("sister", "Nora, cello")
    assert {hit.kind for hit in await local.recall("Nora cello")} == {"turn", "memory"}


async def test_the_answer_beside_the_words_is_found(local: Local) -> None:
    await local.turn("Do you remember the name of the dentist?", "No, sorry.")
    await local.turn("Ah, Ferreira.", "Noted.")
    for number in range(30):
        await local.turn(f"Something else number {number}", "Sure.", session="other")
    assert "Ah, Ferreira." in await local.found("name of the dentist")


@pytest.mark.parametrize("text", ["", " ", "?!", "\x00", "\ud83d", "()", '""', "''", "—", "\u200b", "the of and", "a" * 0])
async def test_nothing_to_look_for_is_an_empty_answer(local: Local, text: str) -> None:
    await local.turn("something was said here")
    assert await local.recall(text) == []


async def test_stopwords_alone_are_looked_for(local: Local) -> None:
    await local.turn("to be or not to be")
    await local.turn("cheese")
    assert (await local.found("to be or not to be"))[0] == "to be or not to be"


async def test_a_session_and_labels_narrow_neighbours_too(local: Local) -> None:
    await local.turn("kayak trip in june", "lovely", session="a", agent="kim", workspace="w1")
    await local.turn("kayak trip in july", "great", session="b", agent="lee")
    await local.turn("and the weather", "fine", session="b", agent="kim")
    assert await local.found("kayak", session="a") == ["kayak trip in june", "lovely"][:1]
    assert {hit.session for hit in await local.recall("kayak trip", session="b")} == {"b"}
    assert {hit.labels["agent"] for hit in await local.recall("kayak trip", labels={"agent": "lee"})} == {"lee"}
    assert await local.recall("kayak", session="unknown") == []
    assert await local.recall("kayak", labels={"agent": "nobody"}) == []
    assert await local.recall("kayak", labels={"unknown": "label"}) == []


async def test_as_of_leaves_out_later_turns_and_neighbours(local: Local) -> None:
    await local.turn("kayak one", at=10 * SECOND)
    await local.turn("kayak two", at=20 * SECOND)
    assert await local.found("kayak", as_of=10 * SECOND) == ["kayak one"]


async def test_users_do_not_meet(local: Local) -> None:
    await local.turn("ada's secret word is heliotrope", user="ada")
    await local.turn("bob's secret word is vermilion", user="bob", agent="ada")
    await local.write("word", "heliotrope", user="ada")
    assert await local.found("secret word heliotrope", user="bob") == ["bob's secret word is vermilion"]
    assert await local.found("secret", user="carol") == []


async def test_who_spoke_is_preferred_when_named(local: Local) -> None:
    await local.turn("I adore lemon cake", "I adore plum cake", user="melanie", agent="caroline")
    first = {name: (await local.recall(f"What cake does {name} adore?", user="melanie"))[0].role for name in ("Melanie", "Caroline")}
    assert first == {"Melanie": "user", "Caroline": "assistant"}


async def test_a_quotation_must_be_there_word_for_word(local: Local) -> None:
    await local.turn("docker networking is hard")
    await local.turn("networking with docker")
    assert await local.found('"docker networking"') == ["docker networking is hard"]
    assert await local.found('about "docker networking"') == ["docker networking is hard"]
    assert (await local.found('a course on "docker networking"'))[0] == "docker networking is hard"
    assert set(await local.found('"docker networking')) == {"docker networking is hard", "networking with docker"}
    assert await local.found('"networking docker"') == []


@pytest.mark.parametrize("limit", [0, 1, 3, 1000])
async def test_limits(local: Local, limit: int) -> None:
    for number in range(5):
        await local.turn(f"apple number{number}")
    assert len(await local.recall("apple", limit=limit)) == min(limit, 5)


async def test_an_edited_turn_is_found_by_its_new_words_under_its_old_id(local: Local) -> None:
    entry = await local.turn("meeting on tuesday", "ok")
    await local.edit(entry, user="meeting on friday")
    await local.edit(entry, assistant="agreed, with biscuits")
    assert await local.found("tuesday") == []
    hit = (await local.recall("friday"))[0]
    assert (hit.id, hit.text) == (entry.event.event_id.hex(), "meeting on friday")
    assert await local.found("biscuits") == ["agreed, with biscuits"]


async def test_an_edit_may_add_and_empty_a_text(local: Local) -> None:
    entry = await local.turn("only a question")
    await local.edit(entry, assistant="now an answer")
    assert await local.found("answer") == ["now an answer"]
    await local.edit(entry, user="")
    assert await local.found("question") == []


async def test_recall_while_events_are_applied(local: Local) -> None:
    import trio

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_write_many, local)
        for _ in range(50):
            hits = await local.recall("steady word")
            assert len(hits) == len({hit.id for hit in hits})
    assert len(await local.recall("steady word", limit=1000)) == 60


async def _write_many(local: Local) -> None:
    for number in range(60):
        await local.turn(f"steady word {number}")
