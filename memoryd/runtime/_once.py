"""Calls that a client sends again: the event that such a call made before is found by its id, and not made twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from memoryd.core import Accepted, GivenEvent
from memoryd.journal import Journal

__all__ = ["Once"]

_REMEMBERED = 65_536  # events; one that is sent again is among the latest
_LOOK = 0.05  # seconds between looks; a client gives its events to another process after seconds of silence


class Once:
    """The latest events by id, of any process.  The log has no index on ids, which would cost every append."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[bytes, int | Accepted] = {}  # the seq, or what is not on disk yet or has another id
        self._looked = 0.0
        self._learned: tuple[int, int] | None = None  # the events after the first seq and up to the second are known

    def append(self, given: GivenEvent, journal: Journal, append: Callable[[], Accepted]) -> Accepted:
        """``append()``, unless the event is there already: then what it was told the first time."""
        with self._lock:
            self._learn(journal, given.after)
            known = self._known.get(given.id)
            if known is None:
                accepted = append()
                self._note(given.id, accepted)
                return accepted
            if isinstance(known, int):
                return Accepted("journaled", known, given.id.hex())
            return self._settled(journal, known)

    def _note(self, event_id: bytes, accepted: Accepted) -> None:
        if accepted.state == "refused":
            return
        is_plain = accepted.seq is not None and accepted.event_id == event_id.hex()
        self._keep(event_id, accepted.seq if is_plain and accepted.seq is not None else accepted)
        if self._learned is not None and accepted.seq == self._learned[1] + 1:
            self._learned = (self._learned[0], accepted.seq)

    def _settled(self, journal: Journal, accepted: Accepted) -> Accepted:
        seq = journal.settled(accepted.event_id) if accepted.state == "held" else None
        return accepted if seq is None else Accepted("journaled", seq, accepted.event_id)

    def _learn(self, journal: Journal, after: int | None) -> None:
        """Know what any process has appended, also this one before it was killed: since the last look, or since ``after``."""
        now = time.monotonic()
        if after is None and now - self._looked < _LOOK:
            return
        self._looked = now
        head = journal.head().seq
        first, last = self._learned or (head, head)
        start = last if after is None else after if after < first else last
        if start < head:
            for seq, event_id in reversed(journal.latest_ids(start, _REMEMBERED)):
                self._keep(event_id, seq)
        self._learned = (min(first, start), max(head, last))

    def _keep(self, event_id: bytes, known: int | Accepted) -> None:
        self._known[event_id] = known
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
