"""CPU of an indexed turn: projection into memory.db, against the least that any design writes.

The floor is a plain insert of the same turns (unique by id and by place, as any design needs), 64 a transaction, plus a bare full-text
insert of their texts, 512 a transaction.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import trio
from _figures import figure, median, texts

from memoryd.core import BackendContext, Cursor, Entry, Scope, Turn, new_event_id
from memoryd.recall import TOKENIZER
from memoryd.store import open_profile
from memoryd_local import LocalBackend, create

ROUNDS, ROWS, SCOPES = 9, 2048, 20


def connected(path: Path, schema: str) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "cache_size=-16384"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute(schema)
    return connection


class RowsOnly:
    """The turns in rows and nothing else, 64 a transaction."""

    SCHEMA = "CREATE TABLE turn (id INTEGER PRIMARY KEY, scope INT, key BLOB, n INT, at INT, user BLOB, UNIQUE (scope, key), UNIQUE (scope, n))"

    def __init__(self, path: Path) -> None:
        self.connection = connected(path, self.SCHEMA)

    def write(self, given: Sequence[Entry]) -> None:
        rows = [(e.seq % SCOPES, e.event.event_id, e.seq, e.seq, e.event.user.encode()) for e in given]  # type: ignore[union-attr]
        for start in range(0, len(rows), 64):
            with self.connection:
                self.connection.executemany(
                    "INSERT INTO turn (scope, key, n, at, user) VALUES (?, ?, ?, ?, ?)", rows[start : start + 64]
                )


class IndexOnly:
    """The texts in a contentless full-text index and nothing else, 512 a transaction, in order of rowid."""

    def __init__(self, path: Path) -> None:
        *words, categories = TOKENIZER
        tokenize = f"{' '.join(words)} '{categories}'"
        self.connection = connected(
            path, f'CREATE VIRTUAL TABLE fts USING fts5 (body, content="", contentless_delete=1, detail=none, tokenize="{tokenize}")'
        )

    def write(self, given: Sequence[Entry]) -> None:
        rows = [((e.seq % SCOPES) << 32 | e.seq, e.event.user) for e in given]  # type: ignore[union-attr]
        for start in range(0, len(rows), 512):
            with self.connection:
                self.connection.executemany("INSERT INTO fts (rowid, body) VALUES (?, ?)", sorted(rows[start : start + 512]))


def entries(part: int) -> list[Entry]:
    return [
        Entry(Cursor("bench", n), Turn(new_event_id(), Scope(user=f"u{n % SCOPES}", session=f"s{n % SCOPES}"), n, text, ""))
        for n, text in enumerate(texts(ROWS, seed=part), part * ROWS + 1)
    ]


async def compare(directory: Path) -> list[dict[str, Any]]:
    """Whole-process CPU, in turn: only the measured part runs at its time."""
    rows, index = RowsOnly(directory / "rows.db"), IndexOnly(directory / "index.db")
    profile = open_profile(directory, "bench")
    backend = create(BackendContext("local", profile.directory, profile.name, profile.instance, profile.key))
    await backend.open()
    spent: dict[str, list[float]] = {"rows": [], "index": [], "ours": []}
    for part in range(ROUNDS):
        given = entries(part)
        spent["rows"].append(cpu(rows.write, given))
        spent["index"].append(cpu(index.write, given))
        spent["ours"].append(await cpu_of_apply(backend, given))
    await backend.aclose()
    ratio = median([one / (row + indexed) for row, indexed, one in zip(*spent.values(), strict=True)])
    rows_only, index_only, ours = (median(times) / ROWS * 1e6 for times in spent.values())
    detail = f"{ours:.0f} us; rows only {rows_only:.0f} us; full-text only {index_only:.0f} us"
    return [figure("CPU of an indexed turn / (rows only + full-text only)", 1.5, 1.15, ratio, "x", detail)]


def cpu(work: Callable[[Sequence[Entry]], None], given: Sequence[Entry]) -> float:
    start = time.process_time()
    work(given)
    return time.process_time() - start


async def cpu_of_apply(backend: LocalBackend, given: Sequence[Entry]) -> float:
    start = time.process_time()
    for place in range(0, len(given), 512):
        await backend.apply(given[place : place + 512])
    return time.process_time() - start


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        return trio.run(compare, Path(scratch))
