"""A checkpoint of 2,000 messages against the least that any archive has to do with them.

The floor of a first checkpoint: canonicalise and hash each row, insert the rows (unique by their digest, as anything that can tell a row
that it has from a new one must keep them) and commit once with fsync.
The floor of a repeated one: canonicalise and hash each row, and one commit with fsync.  Ours adds identities, compression, forks and
the proof.  Both sides run in turn, on one machine, with the same rows, the same canonical form and digest, and the same pragmas.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _figures import figure, median, print_table

from memoryd.checkpoint import Archive
from memoryd.core import Receipt, canonical_bytes, digester
from memoryd.store import Connection, Options, Schema, connect, open_profile, prepare

MESSAGES = 2000
CHARACTERS = 560
ROUNDS = 25
Rows = list[dict[str, Any]]

_FLOOR = Schema(
    "floor",
    (
        "CREATE TABLE row (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, data BLOB NOT NULL);"
        "CREATE TABLE mark (id INTEGER PRIMARY KEY, tip BLOB NOT NULL);",
    ),
)
_WORDS = [line.strip(".,:;()") for line in __doc__.split()]


def messages(seed: int, count: int = MESSAGES) -> Rows:
    """A conversation that no other seed has: prose of :data:`CHARACTERS` characters a row, 1.2 MB in all."""
    luck = random.Random(seed)
    vocabulary = [word + suffix for word in _WORDS for suffix in ("", "s", "ed", "ing")] + [str(luck.random()) for _ in range(200)]
    return [
        {
            "role": "user" if number % 2 == 0 else "assistant",
            "content": " ".join(luck.choices(vocabulary, k=CHARACTERS // 6))[:CHARACTERS],
            "timestamp": 1_790_000_000 + number,
            "message_uid": f"{luck.getrandbits(128):032x}",
        }
        for number in range(count)
    ]


class Floor:
    """The least work: no identity, no fork, no compression, no proof."""

    def __init__(self, home: Path) -> None:
        profile = open_profile(home, "floor")
        path = profile.directory / "floor.db"
        prepare(path, _FLOOR, profile)
        self._connection: Connection = connect(path, Options(synchronous="FULL"))
        self._digest = digester(profile.key, "floor")

    def first(self, rows: Rows) -> None:
        data = [canonical_bytes(row) for row in rows]
        digests = [self._digest(row) for row in data]
        with self._connection.transaction():
            self._connection.executemany("INSERT INTO row (digest, data) VALUES (?, ?)", zip(digests, data, strict=True))

    def again(self, rows: Rows) -> None:
        digests = [self._digest(canonical_bytes(row)) for row in rows]
        with self._connection.transaction():
            self._connection.run("INSERT INTO mark (tip) VALUES (?)", (digests[-1],))

    def close(self) -> None:
        self._connection.close()


class Ours:
    def __init__(self, home: Path) -> None:
        self._archive = Archive.open(open_profile(home, "ours"))

    def checkpoint(self, session: str, rows: Rows) -> Receipt:
        deadline = time.monotonic() + 20
        return self._archive.upsert(rows, user="u", session=session, host="bench", trigger="manual", at=1, deadline=deadline)

    def close(self) -> None:
        self._archive.close()


def run(rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """The three figures: the ratio of ours to the floor in the median round, so that a neighbour that is busy for a while spoils nothing."""
    with tempfile.TemporaryDirectory() as home:
        floor, ours = Floor(Path(home)), Ours(Path(home))
        try:
            _round(floor, ours, -rounds)  # warms up both sides
            done = [_round(floor, ours, number) for number in range(rounds)]
        finally:
            floor.close()
            ours.close()
    return [
        _figure("checkpoint of 2,000 messages, first", 2.0, 1.3, done, "first", "floor first"),
        _figure("checkpoint of 2,000 messages, again unchanged", 1.3, 1.1, done, "unchanged", "floor again"),
        _figure("checkpoint of 2,000 messages, again with 2 more", 1.3, 1.1, done, "with 2 more", "floor again"),
    ]


def _round(floor: Floor, ours: Ours, number: int) -> dict[str, float]:
    session, rows = f"session {number}", messages(number)
    more = rows + messages(-number - 1, 2)
    return {
        "floor first": _seconds(lambda: floor.first(rows)),
        "first": _seconds(lambda: ours.checkpoint(session, rows)),
        "floor again": _seconds(lambda: floor.again(rows)),
        "unchanged": _seconds(lambda: ours.checkpoint(session, rows)),
        "with 2 more": _seconds(lambda: ours.checkpoint(session, more)),
    }


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _figure(name: str, bar: float, stretch: float, rounds: list[dict[str, float]], ours: str, floor: str) -> dict[str, Any]:
    got = median([done[ours] / done[floor] for done in rounds])
    typical = {side: 1000 * median([done[side] for done in rounds]) for side in (ours, floor)}
    return figure(name, bar, stretch, got, "x", f"{typical[ours]:.1f} ms to {typical[floor]:.1f} ms")


if __name__ == "__main__":
    print_table(run())
