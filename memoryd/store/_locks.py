"""Who holds the write lock: the one thing that a user needs to know about a locked store."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["lock_holder"]

WRITE_LOCK_BYTE = 120
"""Where SQLite's WAL-mode write lock lies in the ``-shm`` file; part of its file format."""


def lock_holder(path: Path, table: Path = Path("/proc/locks")) -> int | None:
    """The process id that holds the write lock of the store at ``path``; None where nobody does or the system does not tell."""
    try:
        inode = os.stat(path.with_name(path.name + "-shm")).st_ino
        lines = table.read_text("ascii", "replace").splitlines()
    except OSError:
        return None  # no such file, or a system without /proc
    return next((pid for line in lines if (pid := _holder(line, inode))), None)


def _holder(line: str, inode: int) -> int | None:
    """``1: POSIX  ADVISORY  WRITE 1234 fe:00:5678 120 120``: the process id where the line is about that inode's write lock."""
    match line.split():
        case [_, "POSIX", _, "WRITE", pid, place, first, last] if place.rpartition(":")[2] == str(inode):
            covers = int(first) <= WRITE_LOCK_BYTE and (last == "EOF" or int(last) >= WRITE_LOCK_BYTE)
            return int(pid) if covers and int(pid) > 0 else None
    return None
