"""Bytes as they come, cut into lines."""

from __future__ import annotations

__all__ = ["MAX_FRAME", "Lines"]

MAX_FRAME = 16 * 1024 * 1024


class Lines:
    """Each line without its line break; empty ones are left out.  What is not a whole line yet is kept, up to ``limit`` bytes.

    A longer line is the last thing that is looked at: ``overflow`` is True from then on.
    """

    __slots__ = ("_kept", "_limit", "overflow", "partial")

    def __init__(self, limit: int | None = MAX_FRAME) -> None:
        self._limit = limit
        self._kept: list[bytes] = []
        self.partial = 0
        self.overflow = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now, before one that is too long."""
        first, *rest = data.split(b"\n")
        found: list[bytes] = []
        self._keep(first)
        for part in rest:
            if self.overflow:
                break
            line = b"".join(self._kept)
            if line and not line.isspace():
                found.append(line)
            self._drop()
            self._keep(part)
        return found

    def _keep(self, part: bytes) -> None:
        self.partial += len(part)
        if self._limit is not None and self.partial > self._limit:
            self.overflow = True
            self._drop()
        elif part:
            self._kept.append(part)

    def _drop(self) -> None:
        self._kept = []
        self.partial = 0
