"""Takes events of another log into this one: each id once, in order, in short transactions."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.core import Event, Forget, encode_event, kind_of
from memoryd.errors import StoreFull
from memoryd.journal._erasure import ErasePlan, Erasures
from memoryd.journal._journal import SQL, Journal

__all__ = ["Intake"]

_BUSY_MS = 10_000  # nobody waits for an import, so that it waits for others


class Intake:
    """Knows the ids of a whole log while it is open (some 40 bytes each, in memory): the log has no index on them, which would cost
    every append."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._connection = journal.connection
        self._known_to = 0
        journal.settle_held()
        with journal.lock:
            self._connection.set_busy_ms(_BUSY_MS)
            self._connection.run(SQL["known_ids"])

    def close(self) -> None:
        with self._journal.lock:
            self._connection.run(SQL["drop_known_ids"])

    def add(self, rows: Sequence[tuple[Event, bytes | None]]) -> int:
        """Append those events that the log has not, with their turn keys, in one transaction; returns how many those were.

        Raises :class:`StoreFull` at the quota or the free-space floor, and the store's other errors; nothing of ``rows`` is kept then.
        """
        encoded = [(event.event_id, turn_key, event.at, kind_of(event), encode_event(event)) for event, turn_key in rows]
        self._check_room(sum(len(row[4]) for row in encoded))
        added = 0
        with self._journal.lock, self._connection.transaction("IMMEDIATE"):
            self._look()
            for row in encoded:
                if self._connection.one(SQL["known_seq"], (row[0],)) is None:
                    added += self._append(row)
        return added

    def count_new(self, rows: Sequence[tuple[Event, bytes | None]]) -> int:
        """How many of ``rows`` :meth:`add` would append; nothing is written."""
        with self._journal.lock:
            self._look()
            ids = {event.event_id for event, key in rows if key is None or self._connection.one(SQL["by_turn_key"], (key,)) is None}
            return sum(self._connection.one(SQL["known_seq"], (event_id,)) is None for event_id in ids)

    def _append(self, row: tuple[bytes, bytes | None, int, int, bytes]) -> bool:
        appended = self._connection.one(SQL["append_once"], row)
        if appended is None:  # another event has its turn_id
            return False
        self._connection.run(SQL["know_id"], (row[0], appended[0]))
        self._journal.last_seq = self._known_to = appended[0]
        return True

    def _look(self) -> None:
        """Learn the ids that any process has appended since the last look."""
        self._connection.run(SQL["learn_ids"], (self._known_to,))
        (row,) = self._connection.all(SQL["head"])
        self._known_to = row[0] or 0

    def _check_room(self, size: int) -> None:
        problem = self._journal.room_problem(size)
        if problem:
            path = self._journal.path
            raise StoreFull(f"{path}: the log may not grow ({problem}); what was taken in so far stays", path=str(path))

    def seqs_of(self, ids: Sequence[bytes]) -> tuple[int, ...]:
        """Where those ids are in this log, ascending; what it does not have is left out."""
        with self._journal.lock:
            self._look()
            found = [self._connection.one(SQL["known_seq"], (event_id,)) for event_id in ids]
        return tuple(sorted(row[0] for row in found if row is not None))

    def forget(self, event: Forget, plan: ErasePlan) -> bool:
        """Begin ``event``, which erases payloads that are here; False where the log has it already."""
        if self.seqs_of([event.event_id]):
            return False
        Erasures(self._journal).begin(event, plan)
        return True
