"""Accepting turns: what the caller pays, against a bare apsw commit of the same bytes and against the naive peer."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import apsw
import trio
from _figures import figure, interleave, median, texts
from naive_peer import NaiveMemory

import memoryd
from memoryd.core import Scope, Turn, encode_event, new_event_id

CORPUS = list(texts(400))


class BareCommit:
    """One prepared insert and commit of a payload, WAL, synchronous NORMAL, no checkpoint: the floor."""

    SQL = "INSERT INTO event (id, key, at, kind, payload) VALUES (?, ?, ?, ?, ?)"

    def __init__(self, path: Path, synchronous: str = "NORMAL") -> None:
        self.connection = apsw.Connection(str(path))
        for pragma in ("journal_mode=WAL", f"synchronous={synchronous}", "wal_autocheckpoint=0"):
            self.connection.execute(f"PRAGMA {pragma}").fetchall()
        self.connection.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, id BLOB, key BLOB, at INT, kind INT, payload BLOB)")

    def insert(self, payload: bytes) -> None:
        self.connection.execute(self.SQL, (b"0123456789abcdef", None, 1, 1, payload))


def payloads() -> list[bytes]:
    scope = Scope(user="ada", session="s1")
    return [encode_event(Turn(new_event_id(), scope, 1, text, "Noted.")) for text in CORPUS]


async def caller_time(directory: Path) -> list[dict[str, Any]]:
    bare, naive = BareCommit(directory / "bare.db"), NaiveMemory(directory / "naive.db")
    said, rows, keys = cycle(CORPUS), cycle(payloads()), iter(range(10**9))
    async with memoryd.open_runtime(directory / "home") as rt:
        with memoryd.scope(user="ada", session="s1"):
            for text in CORPUS[:100]:
                rt.sync_turn(text, "Noted.")
            found: dict[str, list[float]] = {"ours": [], "bare": [], "naive": []}
            for _ in range(25):
                part = interleave(40, ours=lambda: rt.sync_turn(next(said), "Noted."), bare=lambda: bare.insert(next(rows)))
                part |= interleave(2, naive=lambda: naive.store("ada", str(next(keys)), next(said)))
                for name, times in part.items():
                    found[name] += times
                await rt.drain()
    ours, floor, peer = (median(found[name]) for name in ("ours", "bare", "naive"))
    detail = f"{ours * 1e6:.0f} us; bare {floor * 1e6:.0f} us; naive {peer * 1e6:.0f} us"
    return [
        figure("sync_turn caller time / bare commit, p50", 2.0, 1.3, ours / floor, "x", detail),
        figure("sync_turn caller time / naive store, p50", 1 / 100, 1 / 200, ours / peer, "x", detail),
    ]


async def searchable(directory: Path) -> list[dict[str, Any]]:
    """Accepted to searchable, idle: recall finds a fresh word without being told to project first."""
    waits: list[float] = []
    async with memoryd.open_runtime(directory / "search") as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("warm up", "ok")
            await rt.drain()
            for number in range(40):
                await trio.sleep(0.02)
                start = time.perf_counter()
                rt.sync_turn(f"the code word is zebra{number}", "Noted.")
                while (await rt.status()).backends[0].backlog:
                    await trio.sleep(0.001)
                waits.append(time.perf_counter() - start)
                assert await rt.recall(f"zebra{number}")
    return [figure("accepted -> searchable, idle, p50", 100, 30, median(waits) * 1000, " ms", f"worst {max(waits) * 1000:.0f} ms")]


async def power_safe(directory: Path) -> list[dict[str, Any]]:
    """64 producers until every turn is safe against power loss, against one FULL transaction a turn."""
    count, producers = 6400, 64
    full = BareCommit(directory / "full.db", "FULL")
    rows = payloads()
    ratios: list[float] = []
    for part in range(3):
        start = time.perf_counter()
        for number in range(400):
            full.insert(rows[number])
        floor = 400 / (time.perf_counter() - start)
        async with memoryd.open_runtime(directory / f"power{part}") as rt:
            start = time.perf_counter()
            async with trio.open_nursery() as nursery:
                for number in range(producers):
                    nursery.start_soon(partial(produce, rt, number, count // producers))
            await rt.flush()
            ours = count / (time.perf_counter() - start)
        ratios.append(ours / floor)
    detail = f"{ours:.0f}/s; one FULL transaction a turn {floor:.0f}/s"
    return [figure("power-safe turns/s, 64 producers / FULL a turn", 10, 12, median(ratios), "x", detail, higher=True)]


async def produce(rt: memoryd.Runtime, number: int, count: int) -> None:
    with memoryd.scope(user="ada", session=f"s{number}"):
        for turn in range(count):
            rt.sync_turn(CORPUS[turn % len(CORPUS)], "Noted.")
            await trio.lowlevel.checkpoint()


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        return [line for part in (caller_time, searchable, power_safe) for line in trio.run(part, directory)]
