"""How far each remote backend is, and what it refused for good."""

from __future__ import annotations

import attrs

from memoryd.core import Cursor, Value
from memoryd.journal._journal import SQL, Journal

__all__ = ["DeadLetter", "Outbox"]


@attrs.frozen(slots=True, eq=False, repr=False)
class DeadLetter(Value):
    """An event that ``backend`` rejected permanently; ``at`` in microseconds since the epoch."""

    backend: str
    seq: int
    reason: str
    at: int


class Outbox:
    """The delivery tables of a journal.  ``advance`` and ``bury`` commit at once; callers advance after the backend's answer."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def cursor(self, backend: str) -> Cursor:
        """Where ``backend`` is; the start of this epoch where it is unknown or of another epoch (then all is sent again, by id)."""
        with self._journal.lock:
            row = self._journal.connection.one(SQL["cursor"], (backend,))
        if row is None or row[0] != self._journal.epoch:
            return Cursor(self._journal.epoch, 0)
        return Cursor(row[0], row[1])

    def advance(self, backend: str, cursor: Cursor) -> None:
        with self._journal.lock:
            self._journal.connection.run(SQL["advance"], (backend, cursor.epoch, cursor.seq))

    def bury(self, backend: str, seq: int, reason: str, at: int) -> None:
        """A dead letter: the event stays in the log, delivery goes on after it."""
        with self._journal.lock:
            self._journal.connection.run(SQL["bury"], (backend, seq, reason[:200], at))

    def dead(self) -> list[DeadLetter]:
        with self._journal.lock:
            return [DeadLetter(*row) for row in self._journal.connection.all(SQL["dead"])]

    def dead_count(self, backend: str) -> int:
        with self._journal.lock:
            return int(self._journal.connection.all(SQL["dead_count"], (backend,))[0][0])
