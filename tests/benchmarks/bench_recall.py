"""Recall with full ranking, against matching the same terms without any ranking, in stores of 100,000 and of a million rows.

Half of the rows are in scopes of 1,000 turns, half in scopes of 10,000.  MEMORYD_BENCH_ROWS (default 1000000) sets the larger store.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import apsw
import attrs
import trio
from _figures import figure, interleave, median, texts

from memoryd.core import BackendContext, Cursor, Entry, Query, Scope, Turn, new_event_id
from memoryd.recall import analyse, language_named, tokenizer
from memoryd.store import open_profile
from memoryd_local import LocalBackend, create

ROWS = int(os.environ.get("MEMORYD_BENCH_ROWS", "1000000"))
SIZES = (1_000, 10_000)
BARS = {1_000: (4.0, 2.0), 10_000: (6.0, 3.0)}
QUERIES = 120
POOL = list(texts(20_000))


@attrs.frozen
class Store:
    """A filled local backend, and a bare connection to the same file."""

    backend: LocalBackend
    bare: apsw.Connection
    rows: int


def users(rows: int, size: int) -> list[str]:
    return [f"u{size}-{number}" for number in range(rows // 2 // size)]


def turns(rows: int) -> Iterator[tuple[str, str, int]]:
    """(user, session, time) of every turn: scopes grow side by side, in sessions of 40 turns."""
    owners = [user for size in SIZES for user in users(rows, size) for _ in range(size // 40)]
    random.Random(2).shuffle(owners)
    for number, user in enumerate(owners):
        for turn in range(40):
            yield user, f"s{number}", 1_700_000_000_000_000 + number * 60_000_000 + turn


async def fill(backend: LocalBackend, rows: int) -> None:
    said = cycle(POOL)
    entries = (
        Entry(Cursor("bench", seq), Turn(new_event_id(), Scope(user=user, session=session), at, next(said), ""))
        for seq, (user, session, at) in enumerate(turns(rows), 1)
    )
    while batch := list(islice(entries, 4096)):
        await backend.apply(batch)


def match_only(bare: apsw.Connection, scope: int, match: str) -> list[Any]:
    """The floor: the rows of the scope that have any of the terms, unranked."""
    sql = "SELECT rowid FROM fts WHERE fts MATCH ? AND rowid BETWEEN ? AND ?"
    return bare.execute(sql, (match, scope << 32, (scope << 32) + 0xFFFFFFFF)).fetchall()


async def measure(store: Store, size: int) -> tuple[float, float]:
    """Median seconds of recall and of its floor, taken in turn."""
    chooser = random.Random(3)
    scopes = dict(store.bare.execute("SELECT name, id FROM scope").fetchall())
    found: dict[str, list[float]] = {"recall": [], "floor": []}
    language, tokenize = language_named("en"), tokenizer()
    for _ in range(QUERIES):
        user = chooser.choice(users(store.rows, size))
        text = " ".join(chooser.sample(chooser.choice(POOL).split(), chooser.randint(3, 8)))
        match = " OR ".join(f'"{term.words[0]}"' for term in analyse(text, language, tokenize).terms)
        floor = partial(match_only, store.bare, scopes[user.encode()], match)
        floor()
        await store.backend.recall(Query(user, text))
        start = trio.current_time()
        await store.backend.recall(Query(user, text))
        found["recall"].append(trio.current_time() - start)
        found["floor"] += interleave(1, floor=floor)["floor"]
    return median(found["recall"]), median(found["floor"])


async def opened(directory: Path, rows: int) -> Store:
    profile = open_profile(directory / str(rows), "bench")
    backend = create(BackendContext("local", profile.directory, profile.name, profile.instance, profile.key))
    await backend.open()
    await fill(backend, rows)
    bare = apsw.Connection(str(profile.directory / "memory.db"), apsw.SQLITE_OPEN_READONLY)
    bare.pragma("cache_size", -65536)
    return Store(backend, bare, rows)


async def compare(directory: Path) -> list[dict[str, Any]]:
    small, large = await opened(directory, ROWS // 10), await opened(directory, ROWS)
    lines: list[dict[str, Any]] = []
    for size in SIZES:
        before, _ = await measure(small, size)
        after, floor = await measure(large, size)
        detail = f"{after * 1e3:.2f} ms; match only {floor * 1e3:.2f} ms; {ROWS:,} rows"
        lines.append(figure(f"recall / match only, scope of {size:,} turns, p50", *BARS[size], after / floor, "x", detail))
        detail = f"{before * 1e3:.2f} -> {after * 1e3:.2f} ms"
        lines.append(figure(f"recall growth {ROWS // 10:,} -> {ROWS:,} rows, scope of {size:,}", 1.3, 1.1, after / before, "x", detail))
    for store in (small, large):
        store.bare.close()
        await store.backend.aclose()
    return lines


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        return trio.run(compare, Path(scratch))
