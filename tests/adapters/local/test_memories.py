"""Keyed memories: upsert, history, deletion, listing, search by substring."""

from __future__ import annotations

from memoryd.core import Entry, MemoryWrite, Outcome, Scope, from_micros, new_event_id
from tests.adapters.local.conftest import SECOND, Local, Log


async def test_an_upsert_keeps_id_and_birth_and_replaces_the_rest(local: Local) -> None:
    first = await local.write("colour", "teal", at=5 * SECOND, metadata={"type": "taste", "a": 1})
    await local.write("colour", "navy", at=9 * SECOND, metadata={"b": 2})
    memory = await local.backend.retrieve("ada", "colour")
    assert memory is not None
    assert (memory.id, memory.value, memory.type) == (first.event.event_id.hex(), "navy", "preference")
    assert (memory.created_at, memory.updated_at) == (from_micros(5 * SECOND), from_micros(9 * SECOND))
    assert memory.metadata == {"b": 2}


async def test_history_is_newest_first_and_answers_as_of(local: Local) -> None:
    await local.write("port", "22", at=10 * SECOND)
    await local.write("port", "49222", at=20 * SECOND)
    versions = await local.backend.history("ada", "port")
    assert [(one.value, one.valid_until) for one in versions] == [("49222", None), ("22", from_micros(20 * SECOND))]
    for second, value in [(10, "22"), (15, "22"), (20, "49222"), (99, "49222")]:
        as_of = from_micros(second * SECOND)
        assert [one.value for one in await local.backend.history("ada", "port", as_of=as_of)] == [value]
    assert await local.backend.history("ada", "port", as_of=from_micros(5 * SECOND)) == []


async def test_dislike_then_like_leaves_like_and_both_in_history(local: Local) -> None:
    await local.write("mushrooms", "dislikes")
    await local.write("mushrooms", "likes")
    memory = await local.backend.retrieve("ada", "mushrooms")
    assert memory is not None
    assert memory.value == "likes"
    assert [one.value for one in await local.backend.history("ada", "mushrooms")] == ["likes", "dislikes"]


async def test_deletion_ends_the_value_and_keeps_the_history(local: Local) -> None:
    await local.write("k", "old", at=10 * SECOND)
    await local.delete("k")
    await local.delete("k")
    await local.delete("never there")
    assert await local.backend.retrieve("ada", "k") is None
    assert await local.found("old") == []
    assert [one.value for one in await local.backend.history("ada", "k")] == ["old"]
    again = await local.write("k", "new")
    memory = await local.backend.retrieve("ada", "k")
    assert memory is not None
    assert memory.id == again.event.event_id.hex()
    assert memory.created_at == memory.updated_at
    assert await local.found("k") == ["new"]


async def test_an_older_write_that_arrives_late_does_not_overwrite(local: Local) -> None:
    """A new epoch of the log brings a write between two that are known already."""
    first, last = write("k", "first"), write("k", "last")
    log = Log()
    await local.backend.apply([log.add(first), log.add(last)])
    renewed = Log("second")
    entries: list[Entry] = [renewed.add(event) for event in (first, write("k", "between"), last)]
    assert await local.backend.apply(entries) == [Outcome("ok")] * 3
    memory = await local.backend.retrieve("ada", "k")
    assert memory is not None
    assert (memory.value, memory.id) == ("last", first.event_id.hex())
    assert [one.value for one in await local.backend.history("ada", "k")] == ["last", "between", "first"]


async def test_an_older_write_never_overwrites_whatever_its_clock(local: Local) -> None:
    await local.write("k", "earlier accepted", at=7200 * SECOND)
    await local.write("k", "later accepted", at=1 * SECOND)
    memory = await local.backend.retrieve("ada", "k")
    assert memory is not None
    assert memory.value == "later accepted"


async def test_lists_are_newest_first(local: Local) -> None:
    for key in ("a", "b", "c"):
        await local.write(key, key.upper())
    await local.write("a", "again")
    assert await local.backend.list_keys("ada") == ["a", "c", "b"]
    assert [one.key for one in await local.backend.list_memories("ada", limit=1, offset=1)] == ["c"]
    assert await local.backend.list_keys("bob") == []


async def test_query_is_a_literal_substring_in_any_case(local: Local) -> None:
    await local.write("Straße", "100%_sure*")
    await local.write("other", "nothing of it")
    for part in ("STRASSE", "%_S", "100%", "*", "_", "%"):
        assert [one.key for one in await local.backend.query("ada", part)] == ["Straße"], part
    assert [one.key for one in await local.backend.query("ada", "OTH")] == ["other"]
    assert await local.backend.query("ada", "") == []
    assert await local.backend.query("ada", "t", limit=0) == []
    assert len(await local.backend.query("ada", "t", limit=1)) == 1


async def test_a_memory_is_found_by_its_key_and_by_any_of_its_ids(local: Local) -> None:
    first = await local.write("editor", "vim")
    second = await local.write("editor", "helix")
    for entry in (first, second):
        hit = await local.backend.find("ada", entry.event.event_id.hex())
        assert hit is not None
        assert (hit.id, hit.text, hit.key, hit.superseded) == (first.event.event_id.hex(), "helix", "editor", False)
    assert await local.backend.find("bob", first.event.event_id.hex()) is None
    assert await local.backend.find("ada", "no id") is None
    assert await local.backend.find("ada", "00" * 16) is None


async def test_many_values_of_one_key(local: Local) -> None:
    log = Log()
    entries = [log.add(write("k", f"v{number}")) for number in range(600)]
    await local.backend.apply(entries)
    assert len(await local.backend.history("ada", "k")) == 600
    assert dict(await local.backend.counts())["memories"] == 1


def write(key: str, value: str) -> MemoryWrite:
    return MemoryWrite(new_event_id(), Scope(user="ada", session="s1"), 1, key, value)
