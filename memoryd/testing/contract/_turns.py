"""Checks of turns: found, in order, once, apart, forgotten."""

from __future__ import annotations

import trio

from memoryd.core import Event, Query
from memoryd.testing.contract._bench import Bench
from memoryd.testing.contract._report import check


async def _sees(bench: Bench, text: str, expected: int, of: str = "ada") -> list[str]:
    """The turns with ``text`` that recall finds, once there are ``expected`` of them."""

    async def look() -> list[str]:
        return [found for found in await bench.found(text, of=of) if text in found]

    return await bench.eventually(look, lambda found: len(found) == expected)


@check
async def a_turn_is_found_by_its_words(bench: Bench) -> None:
    """With its id, time, session and source; a backend without recall finds nothing."""
    async with bench.opened() as backend:
        [entry] = await bench.tell(bench.turn("my zebra is called Zoe"))
        if not bench.can("recall"):
            assert await backend.recall(Query("ada", "zebra")) == []
            return
        await _sees(bench, "zebra", 1)
        hits = [hit for hit in await backend.recall(Query("ada", "zebra")) if "zebra" in hit.text]
        assert [hit.id for hit in hits] == [entry.event.event_id.hex()]
        assert (hits[0].text, hits[0].session) == ("my zebra is called Zoe", "s1")
        assert hits[0].source.startswith(bench.subject.name)


@check
async def a_query_with_nothing_to_look_for_finds_nothing(bench: Bench) -> None:
    """Never "recent": empty, blank and punctuation are no questions.  Operators of a search language are text."""
    async with bench.opened() as backend:
        await bench.tell(bench.turn("zebra"))
        for text in ("", "   ", "\0"):
            assert await backend.recall(Query("ada", text)) == [], f"query {text!r}"
        for text in ('"', "zebra OR", "NEAR(", "a:b", "*", "\ud800", "-" * 5000, "(" * 400):
            await backend.recall(Query("ada", text))


@check
async def applying_again_changes_nothing(bench: Bench) -> None:
    """Idempotent by event id: the same batch, part of it, and one by one."""
    async with bench.opened():
        told = await bench.tell(*[bench.turn(f"zebra number{n}") for n in range(5)])
        for again in (told, told[2:4], *[[entry] for entry in told]):
            outcomes = await bench.give(*again)
            assert [outcome.kind for outcome in outcomes] == ["ok"] * len(again)
        assert len(await _sees(bench, "zebra", 5)) == (5 if bench.can("recall") else 0)


@check
async def there_is_one_outcome_an_event(bench: Bench) -> None:
    async with bench.opened():
        events: list[Event] = [bench.turn("zebra"), bench.write("k", "v"), bench.deletion("k"), bench.turn("horse", session="s2")]
        entries = [bench.entry(event) for event in events]
        assert len(await bench.give(*entries)) == len(entries)
        assert await bench.give() == []


@check
async def a_session_keeps_its_order(bench: Bench) -> None:
    """The order of the log, whatever the clock said."""
    async with bench.opened() as backend:
        events = [bench.turn(f"zebra step{n:02}", at=10**15 - n * 10**9) for n in range(20)]
        for start in range(0, 20, 7):
            await bench.tell(*events[start : start + 7])
        if not bench.can("recall"):
            return
        await _sees(bench, "zebra", 20)
        hits = [hit for hit in await backend.recall(Query("ada", "zebra step", 50)) if "zebra" in hit.text]
        assert len(hits) == 20
        places = [hit.seq for hit in hits]
        assert None not in places, "a hit without its place in the log"
        ordered = [hit.text for hit in sorted(hits, key=lambda hit: hit.seq or 0)]
        assert ordered == [f"zebra step{n:02}" for n in range(20)]


@check
async def users_have_turns_of_their_own(bench: Bench) -> None:
    async with bench.opened():
        await bench.tell(bench.turn("zebra of ada", of="ada"), bench.turn("zebra of bob", of="bob"))
        expected = 1 if bench.can("recall") else 0
        assert await _sees(bench, "zebra", expected, "ada") == ["zebra of ada"] * expected
        assert await _sees(bench, "zebra", expected, "bob") == ["zebra of bob"] * expected
        assert await bench.found("zebra", of="*") == []


@check
async def profiles_do_not_see_each_other(bench: Bench) -> None:
    """Two profiles of one installation, with the same names of users, sessions and keys."""
    other = Bench(bench.subject, bench.directory, "another profile")
    async with bench.opened(), other.opened():
        await bench.tell(bench.turn("zebra here"), bench.write("city", "Oslo"))
        assert await other.found("zebra") == []
        assert await other.backend.retrieve("ada", "city") is None
        await other.tell(other.turn("zebra there"), other.write("city", "Turin"))
        expected = 1 if bench.can("recall") else 0
        assert await _sees(bench, "zebra", expected) == ["zebra here"] * expected
        assert await _sees(other, "zebra", expected) == ["zebra there"] * expected


@check
async def recall_may_be_narrowed_to_a_session(bench: Bench) -> None:
    async with bench.opened():
        await bench.tell(bench.turn("zebra one", session="s1"), bench.turn("zebra two", session="s2"))
        expected = 1 if bench.can("recall") else 0
        await _sees(bench, "zebra", 2 * expected)
        assert [text for text in await bench.found("zebra", session="s2") if "zebra" in text] == ["zebra two"] * expected


@check
async def turns_of_any_text_are_taken(bench: Bench) -> None:
    """Empty sides, NUL, lone surrogates, emoji, a megabyte: accepted, and the others are still found."""
    texts = ["", "a\0b", "\ud800", "👩‍👩‍👧", "x " * 500_000, "<|endoftext|>", "' OR 1=1 --", "{{template}}"]
    async with bench.opened():
        for text in texts:
            await bench.tell(bench.turn(text, "an answer"))
        await bench.tell(bench.turn("zebra at the end"))
        expected = 1 if bench.can("recall") else 0
        assert await _sees(bench, "zebra", expected) == ["zebra at the end"] * expected


@check
async def what_was_forgotten_is_not_found(bench: Bench) -> None:
    """Nor does it come back when everything is delivered again."""
    async with bench.opened():
        told = await bench.tell(bench.turn("zebra to forget"), bench.turn("zebra to keep"))
        [tombstone] = await bench.tell(bench.forgetting(told[0].seq))
        await bench.give(*told, tombstone)
        expected = 0 if not bench.can("recall") else 1 if bench.can("forget") else 2
        assert len(await _sees(bench, "zebra", expected)) == expected


@check
async def recall_during_apply_answers(bench: Bench) -> None:
    """Readers never wait for the writer's whole batch, and never see an event twice."""
    async with bench.opened() as backend:
        await bench.tell(bench.turn("zebra first"))

        async def write() -> None:
            for part in range(10):
                await bench.tell(*[bench.turn(f"zebra {part} {n}") for n in range(10)])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            for _ in range(20):
                hits = await backend.recall(Query("ada", "zebra", 200))
                assert len({hit.id for hit in hits}) == len(hits), "an event is there twice"
                await trio.lowlevel.checkpoint()


@check
async def a_restart_keeps_everything(bench: Bench) -> None:
    async with bench.opened():
        await bench.tell(bench.turn("zebra before"), bench.write("city", "Oslo"))
        place = await bench.backend.position()
    again = bench.reborn()
    async with again.opened():
        assert await again.backend.position() == place
        await again.tell(again.turn("zebra after"))
        expected = 2 if again.can("recall") else 0
        assert len(await _sees(again, "zebra", expected)) == expected
