"""Events that the log could not take because it was locked: bounded, in order, counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

import attrs

__all__ = ["Held", "Row"]

Row: TypeAlias = tuple[bytes, bytes | None, int, int, bytes]  # event_id, turn_key, at, kind, payload

_OVERHEAD = 200  # bytes a held row costs beside its payload


@attrs.define(slots=True, eq=False, repr=False)
class Held:
    """A queue of rows of at most ``max_bytes``, of which ``size`` are used.  Not locked: the journal's lock guards it."""

    max_bytes: int
    size: int = 0
    _rows: deque[Row] = attrs.field(factory=deque)
    _keys: dict[bytes, bytes] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self._rows)

    def offer(self, row: Row) -> bool:
        """Take ``row``; False where it does not fit."""
        added = len(row[4]) + _OVERHEAD
        if self.size + added > self.max_bytes:
            return False
        self._rows.append(row)
        self.size += added
        if row[1] is not None:
            self._keys.setdefault(row[1], row[0])
        return True

    def holder_of(self, turn_key: bytes | None) -> bytes | None:
        """The event id that is held under ``turn_key``, if any."""
        return None if turn_key is None else self._keys.get(turn_key)

    def first(self, count: int, max_bytes: int) -> list[Row]:
        """The oldest rows, at least one where there is one; they stay until :meth:`drop`."""
        taken: list[Row] = []
        size = 0
        for row in self._rows:
            size += len(row[4])
            if taken and (len(taken) == count or size > max_bytes):
                break
            taken.append(row)
        return taken

    def all(self) -> Iterable[Row]:
        return tuple(self._rows)

    def drop(self, count: int) -> None:
        """Forget the ``count`` oldest rows: they are in the log now."""
        for _ in range(count):
            row = self._rows.popleft()
            self.size -= len(row[4]) + _OVERHEAD
            if row[1] is not None:
                self._keys.pop(row[1], None)
