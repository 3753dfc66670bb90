"""Keyed memories at Honcho."""

from __future__ import annotations

import pytest

from memoryd.core import OK, Query, from_micros
from memoryd.testing.honcho import HonchoServer
from memoryd_honcho import HonchoBackend
from tests.adapters.honcho.conftest import Log, opened


async def test_a_memory_and_its_fields(backend: HonchoBackend, log: Log) -> None:
    first = log.write("city", "Oslo", at=1_000_000)
    second = log.write("city", "Bergen", at=2_000_000, metadata={"source": ["chat", {"n": 1}]})
    assert list(await backend.apply([first, second])) == [OK, OK]
    memory = await backend.retrieve("ann", "city")
    assert memory is not None
    assert (memory.key, memory.value, memory.user_id, memory.type) == ("city", "Bergen", "ann", "preference")
    assert (memory.created_at, memory.updated_at) == (from_micros(1_000_000), from_micros(2_000_000))
    assert memory.id == first.event.event_id.hex()
    assert memory.metadata == {"source": ["chat", {"n": 1}]}


async def test_an_older_value_that_comes_late_changes_nothing(backend: HonchoBackend, log: Log) -> None:
    old, new = log.write("city", "Oslo"), log.write("city", "Bergen")
    await backend.apply([new])
    assert list(await backend.apply([old])) == [OK]
    memory = await backend.retrieve("ann", "city")
    assert memory is not None and memory.value == "Bergen"


async def test_what_was_deleted_stays_away(backend: HonchoBackend, honcho: HonchoServer, log: Log) -> None:
    stored, deleted = log.write("city", "Oslo in winter"), log.delete("city")
    for _ in range(2):
        assert set(await backend.apply([stored, deleted])) == {OK}
    assert set(await backend.apply([stored])) == {OK}
    assert await backend.retrieve("ann", "city") is None
    assert await backend.list_keys("ann") == []
    assert await backend.recall(Query("ann", "Oslo winter")) == []
    assert "winter" not in str(honcho.space.sessions) + str(honcho.space.conclusions)


async def test_deleting_what_was_never_there(backend: HonchoBackend, log: Log) -> None:
    late, deleted = log.write("city", "Oslo"), log.delete("city")
    assert set(await backend.apply([deleted])) == {OK}
    assert set(await backend.apply([late])) == {OK}
    assert await backend.retrieve("ann", "city") is None


async def test_a_key_that_comes_back_is_a_new_memory(backend: HonchoBackend, log: Log) -> None:
    first = log.write("city", "Oslo", at=1_000_000)
    again = [log.delete("city"), log.write("city", "Rome", at=5_000_000)]
    await backend.apply([first, *again])
    memory = await backend.retrieve("ann", "city")
    assert memory is not None
    assert memory.id == again[1].event.event_id.hex()
    assert memory.created_at == memory.updated_at == from_micros(5_000_000)


KEYS = ["*", "in", "gte", "a.b", "a-b", "a.b/c d", "k" * 300, "😀", "nul\0", "\ud83d", "%", "_", " "]


async def test_hostile_keys_and_values(backend: HonchoBackend, honcho: HonchoServer, log: Log) -> None:
    values = {key: f"value of {key} <|endoftext|> \0 \ud83d end" for key in KEYS}
    assert set(await backend.apply([log.write(key, value) for key, value in values.items()])) == {OK}
    for key, value in values.items():
        memory = await backend.retrieve("ann", key)
        assert memory is not None and (memory.key, memory.value) == (key, value)
    assert await backend.list_keys("ann") == list(reversed(KEYS))
    assert await backend.list_keys("*") == []
    assert await backend.retrieve("ann", "missing") is None
    assert honcho.space.jobs == []


@pytest.mark.parametrize("value", ["", "x" * 1_000_000, "{}", "*"])
async def test_odd_values(backend: HonchoBackend, log: Log, value: str) -> None:
    assert list(await backend.apply([log.write("key", value)])) == [OK]
    memory = await backend.retrieve("ann", "key")
    assert memory is not None and memory.value == value


async def test_query_is_a_substring_and_nothing_else(backend: HonchoBackend, log: Log) -> None:
    pairs = {"Rate": "100 % sure", "star": "a*b", "under_score": "x", "Straße": "Öl", "plain": "nothing special"}
    await backend.apply([log.write(key, value) for key, value in pairs.items()])

    async def keys(text: str, limit: int = 10) -> list[str]:
        return [memory.key for memory in await backend.query("ann", text, limit)]

    assert await keys("%") == ["Rate"]
    assert await keys("*") == ["star"]
    assert await keys("_") == ["under_score"]
    assert await keys("STRASSE") == ["Straße"]
    assert await keys("ÖL") == ["Straße"]
    assert await keys("r") == ["Straße", "under_score", "star", "Rate"]
    assert await keys("r", 2) == ["Straße", "under_score"]
    assert await keys("") == []
    assert await keys("r", 0) == []
    assert await backend.query("bob", "r") == []


async def test_more_memories_than_a_page(backend: HonchoBackend, log: Log) -> None:
    await backend.apply([log.write(f"key{n}", str(n)) for n in range(120)])
    assert await backend.list_keys("ann") == [f"key{n}" for n in reversed(range(120))]


async def test_a_user_text_is_in_no_filter(backend: HonchoBackend, honcho: HonchoServer, log: Log) -> None:
    await backend.apply([log.write("city", "Oslo"), log.turn("zebra crossing")])
    await backend.query("ann", "zebra")
    await backend.retrieve("ann", "zebra")
    await backend.recall(Query("ann", "zebra", session="zebra"))
    asked = [one.body for one in honcho.received if b'"filters"' in one.body]
    assert asked
    assert not any(b"zebra" in body.partition(b'"filters"')[2] for body in asked)


async def test_a_mirror_is_made_where_it_can_be(backend: HonchoBackend, honcho: HonchoServer, log: Log) -> None:
    await backend.apply([log.write("city", "Oslo")])
    assert [c["content"] for c in honcho.space.conclusions.values()] == ["[city] Oslo"]
    honcho.modes.embeddings = False
    assert list(await backend.apply([log.write("city", "Bergen")])) == [OK]
    assert honcho.space.conclusions == {}, "what was replaced must not be found"
    memory = await backend.retrieve("ann", "city")
    assert memory is not None and memory.value == "Bergen"


async def test_every_write_has_a_revision_of_its_own(backend: HonchoBackend, honcho: HonchoServer, log: Log) -> None:
    """A server with a stale cache drops a write that equals what it remembers."""
    revisions = set()
    for value in ("v1", "v2", "v1"):
        await backend.apply([log.write("key", value)])
        (found,) = [s["metadata"]["rev"] for id, s in honcho.space.sessions.items() if id.startswith("kv-")]
        revisions.add(found)
    assert len(revisions) == 3


async def test_replay_into_the_same_workspace_keeps_the_newest(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entries = [log.write("city", "Oslo"), log.write("city", "Rome"), log.delete("food"), log.write("food", "tea")]
    await backend.apply(entries)
    async with opened(honcho.url) as other:
        for entry in entries:
            assert list(await other.apply([entry])) == [OK]
        assert [(m.key, m.value) for m in await other.query("ann", "o")] == [("food", "tea"), ("city", "Rome")]
