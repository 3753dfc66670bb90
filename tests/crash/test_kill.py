"""kill -9 at random instants: every *journaled* turn is there, once, in order, and can be recalled."""

from __future__ import annotations

from pathlib import Path
from random import Random

import apsw
import pytest

import memoryd
from memoryd.core import Turn
from memoryd.journal import Journal, Limits
from memoryd.store import open_profile
from memoryd.testing import CrashChild

CHILD = Path(__file__).with_name("child_append.py")
ROUNDS = 50


def promised(lines: list[str]) -> dict[str, int]:
    """Event ids with the seq that the child was told, without those it only holds."""
    rows = (line.split() for line in lines)
    return {event_id: int(seq) for _, seq, event_id in rows if seq != "held"}


def check_log(home: Path, told: dict[str, int], name: str) -> int:
    """Everything told is in the log at its place, nothing twice, in the order of acceptance; the number of turns."""
    profile = open_profile(home, "default")
    journal = Journal(profile, Limits())
    entries = []
    while page := journal.read(entries[-1].seq if entries else 0, 5000, 1 << 30):
        entries += page
    journal.close()
    turns = [entry for entry in entries if isinstance(entry.event, Turn)]
    by_id = {entry.event.event_id.hex(): entry.seq for entry in turns}
    assert len(by_id) == len(turns), "an event is there twice"
    assert {event_id: by_id.get(event_id) for event_id in told} == told, "a journaled event is lost or moved"
    mine = [int(e.event.user.rsplit("x", 1)[1]) for e in turns if f"number{name}x" in e.event.user]  # type: ignore[union-attr]
    assert mine == list(range(len(mine))), "the order of acceptance is broken"
    return len(turns)


def check_fts(home: Path) -> None:
    profile = open_profile(home, "default")
    connection = apsw.Connection(str(profile.directory / "memory.db"))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE sql LIKE '%USING fts5%'").fetchall():
        connection.execute(f"INSERT INTO {table}({table}) VALUES('integrity-check')")
    connection.close()


async def check_recall(home: Path, total: int, name: str) -> None:
    """The projection comes to the head, and has each turn once."""
    async with memoryd.open_runtime(home) as rt:
        assert await rt.catch_up(60) == 0
        status = await rt.status()
        assert status.backends[0].rows["turns"] == total
        with memoryd.scope(user="ada"):
            hits = await rt.recall(f"number{name}x{total - 1}")
            assert len([hit for hit in hits if f"number{name}x{total - 1}" in hit.text]) == 1


async def one_round(home: Path, seed: int, name: str) -> tuple[int, int]:
    random = Random(seed)
    with CrashChild([CHILD, home, name]) as child:
        told = promised(child.kill_after(acks=random.randint(1, 300), within=0.05, random=random))
    return len(told), check_log(home, told, name)


async def run_rounds(tmp_path: Path, rounds: int, each_home: int) -> None:
    acknowledged = 0
    for number in range(rounds):
        home = tmp_path / f"home{number // each_home}"
        told, total = await one_round(home, number, f"n{number}")
        acknowledged += told
        if number % each_home == each_home - 1:
            await check_recall(home, total, f"n{number}") if told == total else await check_projection(home, total)
            check_fts(home)
    assert acknowledged > rounds


async def check_projection(home: Path, total: int) -> None:
    async with memoryd.open_runtime(home) as rt:
        assert await rt.catch_up(60) == 0
        assert (await rt.status()).backends[0].rows["turns"] == total


async def test_no_journaled_turn_is_lost_or_doubled(tmp_path: Path) -> None:
    await run_rounds(tmp_path, ROUNDS, each_home=5)


@pytest.mark.soak
async def test_a_thousand_kills(tmp_path: Path) -> None:
    await run_rounds(tmp_path, 1000, each_home=10)
