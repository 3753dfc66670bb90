"""Locks: waiting for a file's, and who holds one of SQLite's: what a user needs to know about a store that is locked, or whose
write-ahead log cannot shrink."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["lock_file", "lock_holder", "lock_readers"]

_LOOK = 0.005

WRITE_LOCK_BYTE = 120
"""Where SQLite's WAL-mode write lock lies in the ``-shm`` file; part of its file format."""

READ_LOCK_BYTES = range(123, 128)
"""Where its read locks lie: each holds a place of the write-ahead log, and what follows stays until it is let go."""


def lock_file(fd: int, patience: float) -> bool:
    """Take the ``flock`` of an open file for this process alone; False where another keeps it for ``patience`` seconds."""
    import fcntl  # missing where memoryd does not run, and the import must work to say so

    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_LOOK)
        else:
            return True


def lock_holder(path: Path, table: Path = Path("/proc/locks")) -> int | None:
    """The process id that holds the write lock of the store at ``path``; None where nobody does or the system does not tell."""
    return next(_holders(path, "WRITE", range(WRITE_LOCK_BYTE, WRITE_LOCK_BYTE + 1), table), None)


def lock_readers(path: Path, table: Path = Path("/proc/locks")) -> tuple[int, ...]:
    """The process ids that read the store at ``path`` at this instant; none where the system does not tell."""
    return tuple(sorted(set(_holders(path, "READ", READ_LOCK_BYTES, table))))


def _holders(path: Path, kind: str, wanted: range, table: Path) -> Iterator[int]:
    """From lines such as ``1: POSIX  ADVISORY  WRITE 1234 fe:00:5678 120 120``: who holds one of the ``wanted`` bytes."""
    try:
        inode = str(os.stat(path.with_name(path.name + "-shm")).st_ino)
        lines = table.read_text("ascii", "replace").splitlines()
    except OSError:
        return  # no such file, or a system without /proc
    for line in lines:
        match line.split():
            case [_, "POSIX", _, held, pid, place, first, last] if held == kind and place.rpartition(":")[2] == inode:
                end = wanted.stop if last == "EOF" else int(last) + 1
                if int(first) < wanted.stop and end > wanted.start and int(pid) > 0:
                    yield int(pid)
