"""Recall with full ranking, against matching the same terms without any ranking, in stores of 100,000 and of a million rows.

Half of the rows are in scopes of 1,000 turns, half in scopes of 10,000.  MEMORYD_BENCH_ROWS (default 1000000) sets the larger store; with
fewer than 200,000 the smaller one, a tenth of it, has no room for a scope of 10,000.
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
LEAST = 10 * 2 * max(SIZES)
QUERIES = 120
POOL = list(texts(20_000))


@attrs.frozen
class Store:
    """A filled local backend, and a bare connection to the same file."""

    backend: LocalBackend
    bare: apsw.Connection
    scopes: dict[bytes, int]
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


@attrs.frozen
class Asked:
    """A query in words of the corpus, and the same terms for the floor."""

    user: str
    text: str
    match: str


def questions(rows: int, size: int) -> Iterator[Asked]:
    chooser = random.Random(3)
    language, tokenize = language_named("en"), tokenizer()
    for _ in range(QUERIES):
        text = " ".join(chooser.sample(chooser.choice(POOL).split(), chooser.randint(3, 8)))
        terms = analyse(text, language, tokenize).terms
        yield Asked(chooser.choice(users(rows, size)), text, " OR ".join(f'"{term.words[0]}"' for term in terms))


async def measure(store: Store, asked: Asked, found: dict[str, list[float]]) -> None:
    """Add the seconds of recall and of its floor for one question, in turn; the best of three, as neighbours only ever slow down."""
    scope = store.scopes[asked.user.encode()]
    recalls, floors = [], []
    for _ in range(3):
        start = trio.current_time()
        await store.backend.recall(Query(asked.user, asked.text))
        recalls.append(trio.current_time() - start)
        floors += interleave(1, floor=partial(match_only, store.bare, scope, asked.match))["floor"]
    found["recall"].append(min(recalls))
    found["floor"].append(min(floors))


async def opened(directory: Path, rows: int) -> Store:
    profile = open_profile(directory / str(rows), "bench")
    backend = create(BackendContext("local", profile.directory, profile.name, profile.instance, profile.key))
    await backend.open()
    await fill(backend, rows)
    bare = apsw.Connection(str(profile.directory / "memory.db"), apsw.SQLITE_OPEN_READONLY)
    bare.pragma("cache_size", -16384)
    return Store(backend, bare, dict(bare.execute("SELECT name, id FROM scope").fetchall()), rows)


async def compare(directory: Path) -> list[dict[str, Any]]:
    small, large = await opened(directory, ROWS // 10), await opened(directory, ROWS)
    lines = [line for size in SIZES for line in await compare_scopes(small, large, size)]
    for store in (small, large):
        store.bare.close()
        await store.backend.aclose()
    return lines


async def compare_scopes(small: Store, large: Store, size: int) -> list[dict[str, Any]]:
    """The figures for scopes of ``size`` turns; the two stores take turns, too."""
    found: dict[int, dict[str, list[float]]] = {store.rows: {"recall": [], "floor": []} for store in (small, large)}
    for pair in zip(questions(small.rows, size), questions(large.rows, size), strict=True):
        for store, asked in zip((small, large), pair, strict=True):
            await measure(store, asked, found[store.rows])
    before, after = median(found[small.rows]["recall"]), median(found[large.rows]["recall"])
    floor = median(found[large.rows]["floor"])
    matched = f"{after * 1e3:.2f} ms; match only {floor * 1e3:.2f} ms; {large.rows:,} rows"
    grown = f"{before * 1e3:.2f} -> {after * 1e3:.2f} ms"
    return [
        figure(f"recall / match only, scope of {size:,} turns, p50", *BARS[size], after / floor, "x", matched),
        figure(f"recall growth {small.rows:,} -> {large.rows:,} rows, scope of {size:,}", 1.3, 1.1, after / before, "x", grown),
    ]


def run() -> list[dict[str, Any]]:
    if ROWS < LEAST:
        raise SystemExit(f"MEMORYD_BENCH_ROWS={ROWS}: expected at least {LEAST}")
    with tempfile.TemporaryDirectory() as scratch:
        return trio.run(compare, Path(scratch))
