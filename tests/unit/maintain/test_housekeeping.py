"""What an open runtime does by itself: files stay small, and limits are told before they are reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

import memoryd
from memoryd.errors import JournalUnavailable
from memoryd.store import Options, connect, profile_directory, wal_size
from tests.unit.maintain.home import TALK


async def until(true: Callable[[], Any]) -> None:
    with trio.fail_after(60):
        while not true():
            await trio.sleep(0.05)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """House-keeping without its pauses."""
    for name, seconds in {"_IDLE": 0.05, "_RECLAIM": 0.1}.items():
        monkeypatch.setattr(f"memoryd.runtime._keep.{name}", seconds)


async def test_what_a_large_forget_frees_goes_back_to_the_disk(home: Path, often: None) -> None:
    async with memoryd.open_runtime(home, config={"store.free_floor": 0}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            for number in range(3000):
                rt.sync_turn(f"turn {number} " + "with many words " * 60, "and an answer " * 60)
            await rt.checkpoint([{"role": "user", "content": f"row {number} {n}"} for number in range(200) for n in range(10)])
            rt.sync_turn("another user's", "stays")
            assert await rt.drain(60)
            assert await rt.catch_up(60) == 0
            sizes = {path: path.stat().st_size for path in profile_directory(home, "default").glob("*.db")}
            assert (await rt.forget(everything=True)).pending == 0
        grown = [path for path, size in sizes.items() if size > 1 << 20]
        assert {path.name for path in grown} == {"log.db", "memory.db"}
        await until(lambda: all(path.stat().st_size < sizes[path] / 2 for path in grown))
        assert (await rt.status()).state == "ok"


async def test_a_log_that_a_reader_has_pinned_comes_back_under_its_cap(home: Path, often: None) -> None:
    config = {"store.free_floor": 0, "log.wal_cap_bytes": 1 << 20}
    async with memoryd.open_runtime(home, config=config) as rt:
        paths = [profile_directory(home, "default") / name for name in ("log.db", "memory.db")]
        rt_scope = memoryd.scope(user="ada", session="s1")
        with rt_scope:
            rt.sync_turn("first", "ok")
            assert await rt.drain(30)
            readers = [connect(path, Options(readonly=True)) for path in paths]
            rows = [reader.execute("SELECT 1 UNION ALL SELECT count(*) FROM event") for reader in readers]
            for one in rows:
                next(one)
            for number in range(3000):
                rt.sync_turn(f"turn {number} " + "with many words " * 40, "and an answer " * 40)
            assert await rt.drain(60)
            assert all(wal_size(path) > 1 << 20 for path in paths)
            for one, reader in zip(rows, readers, strict=True):
                list(one)
                reader.close()
            await until(lambda: all(wal_size(path) <= 1 << 20 for path in paths))


async def test_the_quota_is_told_before_and_after(home: Path) -> None:
    async with memoryd.open_runtime(home, config={"store.free_floor": 0, "log.max_bytes": 1 << 20}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            assert not any("log.max_bytes" in note for note in (await rt.status()).notes)
            warned = refused = False
            while not refused:
                try:
                    rt.sync_turn("many words " * 400, "ok")
                except JournalUnavailable:
                    refused = True
                notes = (await rt.status()).notes
                warned = warned or any("% of log.max_bytes" in note for note in notes)
            assert warned, "from 80 % on"
            assert any("turns are refused" in note for note in notes)
            assert (await rt.checkpoint(TALK)).verdict == "archived", "the gate goes last"
