"""Calls that a client sends again: the event that such a call made before is found by its id, and not made twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from memoryd.core import Accepted, GivenEvent
from memoryd.journal import Journal

__all__ = ["Once"]

_REMEMBERED = 65_536  # events of clients; one sent again is among the latest


class Once:
    """The latest events whose id a client made, by id.  The log has no index on ids, which would cost every append."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, Accepted] = OrderedDict()
        self._learned = (0, 0)  # the seqs after the first and up to the second were looked through in the log

    def append(self, given: GivenEvent, journal: Journal, append: Callable[[], Accepted]) -> Accepted:
        """``append()``, unless the event is there already: then what it was told the first time."""
        with self._lock:
            if given.after is not None:
                self._learn(journal, given.after)
            accepted = self._known.get(given.id)
            if accepted is None:
                accepted = append()
                if accepted.state in ("journaled", "held"):
                    self._keep(given.id, accepted)
            elif accepted.state == "held":
                accepted = self._settled(journal, given.id, accepted)
            return accepted

    def _settled(self, journal: Journal, event_id: bytes, accepted: Accepted) -> Accepted:
        seq = journal.settled(accepted.event_id)
        if seq is None:
            return accepted
        self._known[event_id] = settled = Accepted("journaled", seq, accepted.event_id)
        return settled

    def _learn(self, journal: Journal, after: int) -> None:
        """Know what the log has after that seq: the call may have been served by another process, or by this one before it was killed."""
        first, last = self._learned
        start = last if first <= after <= last else after
        rows = journal.latest_ids(start, _REMEMBERED)
        for seq, event_id in reversed(rows):
            if event_id not in self._known or self._known[event_id].state == "held":
                self._keep(event_id, Accepted("journaled", seq, event_id.hex()))
        if rows:
            self._learned = (first if start == last else after, rows[0][0])

    def _keep(self, event_id: bytes, accepted: Accepted) -> None:
        self._known[event_id] = accepted
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
