"""Keeping store files small: write-ahead logs under their cap, and free pages given back to the disk."""

from __future__ import annotations

from pathlib import Path

import attrs

from memoryd.core import Value
from memoryd.errors import StoreLocked
from memoryd.store._connection import Connection, connect, wal_size
from memoryd.store._pragmas import Options

__all__ = ["Reclaimed", "fold_back", "reclaim"]

FREE_PAGES = 256  # 1 MiB: fewer are left for what comes next
FREE_SHARE = 8  # so is less than an eighth of the file
SLICE = 64  # pages that one write transaction moves: some milliseconds
OPTIONS = Options(busy_ms=0, autocheckpoint=0)


@attrs.frozen(slots=True, eq=False, repr=False)
class Reclaimed(Value):
    """``pages`` given back to the disk; ``free`` left in the file."""

    pages: int
    free: int


def fold_back(path: Path, cap: int, *, vfs: str | None = None) -> bool:
    """Copy a write-ahead log of more than ``cap`` bytes into its file and cut it; False where a reader or writer is in the way."""
    if wal_size(path) <= cap:
        return True
    connection = connect(path, OPTIONS, vfs=vfs)
    try:
        connection.checkpoint("PASSIVE")
        connection.checkpoint("TRUNCATE")
    except StoreLocked:
        return False
    finally:
        connection.close()
    return True


def reclaim(path: Path, slices: int, *, vfs: str | None = None) -> Reclaimed:
    """After a large deletion: give back free pages, at most ``slices`` short write transactions of them.

    A file that was made before this was possible gives nothing back.  Raises :class:`~memoryd.errors.StoreError`; a lock ends it.
    """
    connection = connect(path, OPTIONS, vfs=vfs)
    try:
        return _reclaim(connection, slices)
    finally:
        connection.close()


def _reclaim(connection: Connection, slices: int) -> Reclaimed:
    free = before = _number(connection, "PRAGMA freelist_count")
    worthwhile = free > max(FREE_PAGES, _number(connection, "PRAGMA page_count") // FREE_SHARE)
    while worthwhile and slices > 0 and free > FREE_PAGES:
        try:
            connection.all(f"PRAGMA incremental_vacuum({SLICE})")
        except StoreLocked:
            break
        left, slices = _number(connection, "PRAGMA freelist_count"), slices - 1
        if left >= free:
            break
        free = left
    if free < before:
        connection.checkpoint("PASSIVE")  # the file itself shrinks when it takes in its log
    return Reclaimed(before - free, free)


def _number(connection: Connection, pragma: str) -> int:
    return int(connection.all(pragma)[0][0])
