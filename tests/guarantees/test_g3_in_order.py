"""G3: within a session, order is acceptance order, never the wall clock; a late older write never overwrites a newer value."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import memoryd
from memoryd.core import Turn
from memoryd.journal import Journal, Limits
from memoryd.store import open_profile

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def texts_in_log(home: Path) -> list[str]:
    journal = Journal(open_profile(home, "default"), Limits())
    texts = [entry.event.user for entry in journal.read(0, 10_000) if isinstance(entry.event, Turn)]
    journal.close()
    return texts


async def test_a_clock_set_back_does_not_change_the_order(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            for n, at in enumerate((NOON, NOON - timedelta(hours=2), NOON, NOON - timedelta(days=400))):
                rt.sync_turn(f"zebra {n}", "ok", created_at=at)
            await rt.drain()
            found = {hit.text: (hit.seq, hit.at) for hit in await rt.recall("zebra", 10)}
    assert texts_in_log(tmp_path) == [f"zebra {n}" for n in range(4)]
    assert [found[f"zebra {n}"][0] for n in range(4)] == [1, 2, 3, 4]
    assert found["zebra 1"][1] == NOON - timedelta(hours=2)


async def test_a_thousand_turns_of_one_instant_keep_their_order(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            for n in range(1000):
                rt.sync_turn(f"n{n}", "ok", created_at=NOON)
    assert texts_in_log(tmp_path) == [f"n{n}" for n in range(1000)]


async def test_the_last_write_wins_whatever_its_clock_says(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada"):
            await rt.store("k", "new", created_at=NOON)
            await rt.store("k", "newer, by an older clock", created_at=NOON - timedelta(days=1))
            memory = await rt.retrieve("k")
            assert memory is not None
            assert memory.value == "newer, by an older clock"
            assert [v.value for v in await rt.history("k")] == ["newer, by an older clock", "new"]


async def test_store_delete_store_end_as_called(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada"):
            await rt.store("k", "one")
            await rt.delete("k")
            assert await rt.retrieve("k") is None
            await rt.store("k", "two")
            memory = await rt.retrieve("k")
            assert memory is not None
            assert memory.value == "two"
            assert memory.created_at == memory.updated_at
