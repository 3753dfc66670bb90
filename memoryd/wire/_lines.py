"""Bytes as they come, cut into lines."""

from __future__ import annotations

from memoryd.errors import ProtocolError

__all__ = ["MAX_FRAME", "Lines"]

MAX_FRAME = 16 * 1024 * 1024


class Lines:
    """Each line without its line break; empty ones are left out.  What is not a whole line yet is kept, up to ``limit`` bytes."""

    __slots__ = ("_kept", "_limit", "_size")

    def __init__(self, limit: int | None = MAX_FRAME) -> None:
        self._limit = limit
        self._kept: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now.  Raises :class:`ProtocolError` for a line above the limit; lines before it are lost with it."""
        first, *rest = data.split(b"\n")
        self._keep(first)
        if not rest:
            return []
        whole = [b"".join(self._kept)]
        whole += rest[:-1]
        self._kept, self._size = [], 0
        self._keep(rest[-1])
        return [line for line in whole if line and not line.isspace()]

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._limit is not None and self._size > self._limit:
            self._kept, self._size = [], 0
            raise ProtocolError(f"a frame of more than {self._limit} bytes")
        if part:
            self._kept.append(part)

    @property
    def partial(self) -> int:
        """How many bytes wait for the rest of their line."""
        return self._size
