"""Whether the log may grow: the quota ``log.max_bytes`` and the free-space floor, looked at now and then, not at every append."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import attrs

from memoryd.store import free_bytes

__all__ = ["Room", "default_floor"]

_EVERY_BYTES = 1 << 20
_EVERY_SECONDS = 1.0
_FLOOR = 256 << 20


def default_floor(total: int) -> int:
    """The smaller of 256 MiB and 5 % of the file system: what turns leave free for the gate."""
    return min(_FLOOR, total // 20)


@attrs.define(slots=True, eq=False, repr=False)
class Room:
    """``floor`` None means the default; ``max_bytes`` 0 means no quota."""

    path: Path
    max_bytes: int = 0
    floor: int | None = None
    _since: int = _EVERY_BYTES
    _checked_at: float = 0.0
    _problem: str = ""

    def problem(self, size: int) -> str:
        """Why an event of ``size`` bytes must be refused (``full``, ``quota``, ``missing``), or an empty text."""
        self._since += size
        now = time.monotonic()
        if self._problem or self._since >= _EVERY_BYTES or now - self._checked_at >= _EVERY_SECONDS:
            self._problem = self._look(size)
            self._since = 0
            self._checked_at = now
        return self._problem

    def _look(self, size: int) -> str:
        if self.max_bytes and self.used() + size > self.max_bytes:
            return "quota"
        directory = self.path.parent
        try:
            floor = self.floor if self.floor is not None else default_floor(shutil.disk_usage(directory).total)
        except FileNotFoundError:
            return "missing"
        return "full" if floor and free_bytes(directory) - size < floor else ""

    def used(self) -> int:
        """Bytes of the log and its WAL."""
        return sum(_size(f"{self.path}{suffix}") for suffix in ("", "-wal"))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
