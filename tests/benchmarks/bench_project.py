"""CPU of an indexed turn: projection into memory.db, against the least that any design writes.

The floor is a plain insert of the same texts, 64 a transaction, plus a bare full-text insert of them, 512 a transaction.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
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
    """The texts in rows and nothing else, 64 a transaction."""

    def __init__(self, path: Path) -> None:
        self.connection = connected(
            path, "CREATE TABLE turn (id INTEGER PRIMARY KEY, key BLOB, scope INT, n INT, at INT, user BLOB, UNIQUE (scope, n))"
        )

    def write(self, said: Sequence[str], first: int) -> None:
        rows = [(None, b"0123456789abcdef", n % SCOPES, n, n, text.encode()) for n, text in enumerate(said, first)]
        for start in range(0, len(rows), 64):
            with self.connection:
                self.connection.executemany("INSERT INTO turn VALUES (?, ?, ?, ?, ?, ?)", rows[start : start + 64])


class IndexOnly:
    """The texts in a contentless full-text index and nothing else, 512 a transaction, in order of rowid."""

    def __init__(self, path: Path) -> None:
        *words, categories = TOKENIZER
        tokenize = f"{' '.join(words)} '{categories}'"
        self.connection = connected(
            path, f'CREATE VIRTUAL TABLE fts USING fts5 (body, content="", contentless_delete=1, detail=none, tokenize="{tokenize}")'
        )

    def write(self, said: Sequence[str], first: int) -> None:
        rows = [((n % SCOPES) << 32 | n, text) for n, text in enumerate(said, first)]
        for start in range(0, len(rows), 512):
            with self.connection:
                self.connection.executemany("INSERT INTO fts (rowid, body) VALUES (?, ?)", sorted(rows[start : start + 512]))


def entries(said: Sequence[str], first: int) -> list[Entry]:
    return [
        Entry(Cursor("bench", n), Turn(new_event_id(), Scope(user=f"u{n % SCOPES}", session=f"s{n % SCOPES}"), n, text, ""))
        for n, text in enumerate(said, first)
    ]


async def compare(directory: Path) -> list[dict[str, Any]]:
    """Whole-process CPU, in turn: only the measured part runs at its time."""
    rows, index = RowsOnly(directory / "rows.db"), IndexOnly(directory / "index.db")
    profile = open_profile(directory, "bench")
    backend = create(BackendContext("local", profile.directory, profile.name, profile.instance, profile.key))
    await backend.open()
    spent: dict[str, list[float]] = {"rows": [], "index": [], "ours": []}
    for part in range(ROUNDS):
        said, first = list(texts(ROWS, seed=part)), part * ROWS + 1
        given = entries(said, first)
        spent["rows"].append(cpu(lambda said=said, first=first: rows.write(said, first)))
        spent["index"].append(cpu(lambda said=said, first=first: index.write(said, first)))
        spent["ours"].append(await cpu_of_apply(backend, given))
    await backend.aclose()
    ratio = median([one / (row + indexed) for row, indexed, one in zip(*spent.values(), strict=True)])
    rows_only, index_only, ours = (median(times) / ROWS * 1e6 for times in spent.values())
    detail = f"{ours:.0f} us; rows only {rows_only:.0f} us; full-text only {index_only:.0f} us"
    return [figure("CPU of an indexed turn / (rows only + full-text only)", 1.5, 1.15, ratio, "x", detail)]


def cpu(work: Any) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


async def cpu_of_apply(backend: LocalBackend, given: Sequence[Entry]) -> float:
    start = time.process_time()
    for place in range(0, len(given), 512):
        await backend.apply(given[place : place + 512])
    return time.process_time() - start


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        return trio.run(compare, Path(scratch))
