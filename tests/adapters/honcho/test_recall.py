"""Recall from Honcho: what is found, whose, and why."""

from __future__ import annotations

import pytest

from memoryd.core import Query, from_micros
from memoryd.errors import BackendTransient
from memoryd.testing.honcho import HonchoServer
from memoryd_honcho import HonchoBackend
from tests.adapters.honcho.conftest import Log, opened


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts come beside the search, a moment later at most: on a busy machine that moment is longer."""
    monkeypatch.setattr("memoryd_honcho._recall._GRACE", 10.0)


async def test_a_hit_says_what_it_is(backend: HonchoBackend, log: Log) -> None:
    entry = log.turn("The zebra lives in Kenya", "Noted.", at=1_700_000_000_000_000)
    await backend.apply([entry, log.turn("Something else entirely", "Yes.")])
    hit, *_ = await backend.recall(Query("ann", "where does the zebra live?"))
    assert (hit.id, hit.kind, hit.text, hit.role) == (entry.event.event_id.hex(), "turn", "The zebra lives in Kenya", "user")
    assert (hit.at, hit.source, hit.seq, hit.session) == (from_micros(1_700_000_000_000_000), "honcho:turn", 1, "s1")
    assert hit.why == {"rank": 1.0}


async def test_an_event_is_there_once(backend: HonchoBackend, log: Log) -> None:
    entries = [log.turn("zebra " * 3_000, "zebra zebra"), log.turn("zebra", "zebra")]
    await backend.apply(entries)
    hits = await backend.recall(Query("ann", "zebra"))
    assert sorted(hit.id for hit in hits) == sorted(entry.event.event_id.hex() for entry in entries)


@pytest.mark.usefixtures("patient")
async def test_memories_are_found_as_they_are_now(backend: HonchoBackend, log: Log) -> None:
    first = log.write("favourite colour", "green")
    await backend.apply([first, log.write("favourite colour", "deep blue"), log.write("city", "Oslo")])
    hit, *_ = await backend.recall(Query("ann", "favourite colour"))
    assert (hit.id, hit.kind, hit.text, hit.key, hit.source) == (
        first.event.event_id.hex(), "memory", "deep blue", "favourite colour", "honcho:memory",
    )  # fmt: skip


@pytest.mark.usefixtures("patient")
async def test_conclusions_cards_and_summaries_are_context(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    await backend.apply([log.turn("I moved to Oslo", "Nice.")])
    user = next(message["peer_id"] for message in honcho.messages() if message["metadata"]["r"] == "user")
    made = {"observer_id": user, "observed_id": user, "content": "ann lives in Oslo"}
    honcho.space.conclusions["c1"] = {**made, "id": "c1", "level": "deductive", "session_id": None, "created_at": "2026-01-02T00:00:00+00:00"}
    honcho.space.cards[user] = ["Name: Ann", "Lives in Oslo"]
    hits = await backend.recall(Query("ann", "Oslo"))
    assert {(hit.source, hit.text) for hit in hits} == {
        ("honcho:turn", "I moved to Oslo"), ("honcho:conclusion", "ann lives in Oslo"), ("honcho:card", "Lives in Oslo"),
    }  # fmt: skip
    honcho.summarise(honcho.messages()[0]["session_id"], "They talked about Oslo.")
    hits = await backend.recall(Query("ann", "Oslo", session="s1"))
    assert [hit.source for hit in hits] == ["honcho:turn", "honcho:summary"]


@pytest.mark.parametrize("text", ["", "   ", "***", "?!", "\0", "\u200b"])
async def test_nothing_to_look_for_finds_nothing(honcho: HonchoServer, backend: HonchoBackend, log: Log, text: str) -> None:
    await backend.apply([log.turn("anything", "at all")])
    before = len(honcho.received)
    assert await backend.recall(Query("ann", text)) == []
    assert len(honcho.received) == before


@pytest.mark.parametrize("text", ["<|endoftext|>", "a <|fim_middle|> b", "\ud83d x", "x" * 4096, "😀", "in", "zebra*"])
async def test_hostile_queries(backend: HonchoBackend, log: Log, text: str) -> None:
    await backend.apply([log.turn("the zebra", "ok")])
    assert len(await backend.recall(Query("ann", text))) == 1


async def test_limits(backend: HonchoBackend, log: Log) -> None:
    await backend.apply([log.turn(f"zebra number {n}", f"zebra answer {n}") for n in range(80)])
    assert len(await backend.recall(Query("ann", "zebra", limit=30))) == 30
    assert len(await backend.recall(Query("ann", "zebra", limit=1))) == 1
    assert await backend.recall(Query("ann", "zebra", limit=0)) == []


@pytest.mark.usefixtures("patient")
async def test_a_session_and_labels_and_a_moment_narrow(backend: HonchoBackend, log: Log) -> None:
    entries = [
        log.turn("zebra one", session="s1", agent="a"), log.turn("zebra two", session="s2", agent="b"),
        log.turn("zebra three", session="s2", agent="a", workspace="w"), log.write("zebra", "four"),
    ]  # fmt: skip
    await backend.apply(entries)

    async def texts(**narrow: object) -> set[str]:
        return {hit.text for hit in await backend.recall(Query("ann", "zebra", **narrow))}  # type: ignore[arg-type]

    assert await texts() == {"zebra one", "zebra two", "zebra three", "four"}
    assert await texts(session="s2") == {"zebra two", "zebra three"}
    assert await texts(session="none") == set()
    assert await texts(labels={"agent": "a"}) == {"zebra one", "zebra three"}
    assert await texts(labels={"agent": "a", "workspace": "w"}) == {"zebra three"}
    assert await texts(as_of=1_700_000_000_000_001) == {"zebra one", "zebra two"}


async def test_other_programs_messages_are_left_alone(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    await backend.apply([log.turn("zebra", "ours")])
    ours = honcho.messages()[0]
    for metadata in ({}, {**ours["metadata"], "ev": 7}, {**ours["metadata"], "r": "tool"}, {**ours["metadata"], "i": "0"}):
        honcho._store.add_messages("memoryd", ours["session_id"], [{"content": "zebra", "peer_id": "x", "metadata": metadata}])
    assert len(await backend.recall(Query("ann", "zebra"))) == 1


async def test_without_embeddings_recall_says_so(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    await backend.apply([log.turn("zebra", "ok"), log.write("key", "zebra")])
    honcho.modes.embeddings = False
    with pytest.raises(BackendTransient):
        await backend.recall(Query("ann", "zebra"))
    assert [memory.key for memory in await backend.query("ann", "zebra")] == ["key"]


async def test_facts_that_hang_do_not_hold_up_what_was_found(honcho: HonchoServer, log: Log) -> None:
    from memoryd.testing.honcho import Fault

    async with opened(honcho.url, read_timeout=30.0) as backend:
        await backend.apply([log.turn("zebra", "ok")])
        honcho.faults += [Fault("hang", on="find_conclusions"), Fault("hang", on="card")]
        assert len(await backend.recall(Query("ann", "zebra"))) == 1
