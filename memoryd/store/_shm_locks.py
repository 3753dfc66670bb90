"""Locks of the ``-shm`` file, where write-ahead logging does its locking.

They pass through no method of a VFS in Python, only through the system call ``fcntl`` that SQLite lets one replace.  Linux on a 64-bit
machine only: elsewhere variadic functions take their arguments in another way.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import sys
from collections.abc import Callable

import apsw

__all__ = ["ShmLocks"]

SUPPORTED = sys.platform.startswith("linux") and sys.maxsize > 2**32


class _Flock(ctypes.Structure):
    """``struct flock`` of 64-bit Linux."""

    _fields_ = (
        ("type", ctypes.c_short),
        ("whence", ctypes.c_short),
        ("start", ctypes.c_int64),
        ("length", ctypes.c_int64),
        ("pid", ctypes.c_int),
    )


class ShmLocks:
    """Asks ``refuse`` before each lock that SQLite takes on a ``-shm`` file: an errno to fail with, or 0 to go on.

    The replacement is for the whole process until :meth:`remove`; ``refuse`` gets the path of the file, to pick its own.
    """

    def __init__(self, vfs: apsw.VFS, refuse: Callable[[str], int]) -> None:
        if not SUPPORTED:
            raise NotImplementedError("locks of the -shm file can be made to fail on 64-bit Linux only")
        self._vfs = vfs
        self._refuse = refuse
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, use_errno=True)
        self._pointer = vfs.xGetSystemCall("fcntl") or 0
        self._original = prototype(self._pointer)
        self._replacement = prototype(self._fcntl)  # SQLite keeps only the address: this object has to stay
        vfs.xSetSystemCall("fcntl", ctypes.cast(self._replacement, ctypes.c_void_p).value or 0)

    def remove(self) -> None:
        """Give SQLite its own system call back."""
        self._vfs.xSetSystemCall("fcntl", self._pointer)

    def _fcntl(self, fd: int, command: int, argument: int | None) -> int:
        if command == fcntl.F_SETLK and argument and _Flock.from_address(argument).type != fcntl.F_UNLCK:
            number = self._asked(fd)
            if number:
                ctypes.set_errno(number)
                return -1
        return int(self._original(fd, command, argument))

    def _asked(self, fd: int) -> int:
        try:
            path = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            return errno.EIO  # SQLite asks for a lock on what is not open
        return self._refuse(path) if path.endswith("-shm") else 0
