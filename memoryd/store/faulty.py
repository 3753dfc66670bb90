"""A disk that fails when told to, for tests of whatever stands on a store.  ``memoryd.testing`` gives it to the public.

A scenario is run once without a fault to count its operations, then once for each of them with that one failing::

    with FaultyVFS("faulty") as disk:
        scenario(vfs=disk.name)
        for nth in range(1, disk.count("write") + 1):
            disk.arm(Fault("write", "ENOSPC", nth))
            scenario(vfs=disk.name)       # must raise a typed error or succeed, and never lie
            disk.heal()

Write-ahead logging locks the ``-shm`` file, and those locks do not pass through a VFS: ``FaultyVFS(name, shm_locks=True)`` counts and
fails them too (file ``shm``), on Linux, by a hook that is process-wide until the block ends.  All connections of a process share one
``-shm`` file, so another's lock of the same store counts as well.  SQLite takes every failure of such a lock for ``busy``, and tries
for ten seconds where a lock that lets it read stays so.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from types import TracebackType
from typing import Final, Literal, TypeAlias

import apsw
import attrs

from memoryd.store._shm_locks import ShmLocks
from memoryd.store._sync import data_sync

__all__ = ["Fault", "FaultKind", "FaultyVFS", "FileKind", "Operation"]

Operation: TypeAlias = Literal["open", "read", "write", "sync", "truncate", "lock", "delete"]
FileKind: TypeAlias = Literal["db", "wal", "shm", "journal", "temp"]
FaultKind: TypeAlias = Literal["EIO", "ENOSPC", "EACCES", "short", "busy"]

CODES: Final[dict[Operation, int]] = {
    "open": apsw.SQLITE_CANTOPEN,
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "lock": apsw.SQLITE_IOERR_LOCK,
    "delete": apsw.SQLITE_IOERR_DELETE,
}
SHORT: Final = ("read", "write")


@attrs.frozen
class Fault:
    """The ``nth`` operation (from 1, counted since :meth:`FaultyVFS.arm`) fails; ``lasting``: and every one after it.

    ``short`` reads or writes half of the bytes, a short write then reports a full disk; ``busy`` is for locks; the others are what the
    system call would say.  ``file`` narrows it to one kind of file.
    """

    operation: Operation
    kind: FaultKind = "EIO"
    nth: int = 1
    file: FileKind | None = None
    lasting: bool = False

    def __attrs_post_init__(self) -> None:
        if (self.kind == "short" and self.operation not in SHORT) or (self.kind == "busy" and self.operation != "lock"):
            raise ValueError(f"a {self.operation} cannot be {self.kind}")


class FaultyVFS(apsw.VFS):
    """The system's own VFS with a :class:`Fault`; give ``vfs=disk.name`` to whatever opens a store.  Any thread may use it."""

    def __init__(self, name: str, plan: Fault | None = None, *, shm_locks: bool = False) -> None:
        super().__init__(name, "")
        self.name = name
        self._lock = threading.Lock()
        self._last = threading.local()
        self._ours: set[str] = set()
        self.arm(plan)
        self._shm_locks = ShmLocks(self, self._refuse_lock) if shm_locks else None

    def arm(self, plan: Fault | None) -> None:
        """Begin to count anew, with ``plan`` as the fault to come; None only counts."""
        with self._lock:
            self._plan = plan
            self._counts: Counter[tuple[Operation, FileKind]] = Counter()
            self._fired = 0

    def heal(self) -> None:
        """No further fault; the counts stay."""
        with self._lock:
            self._plan = None

    @property
    def fired(self) -> int:
        """How many operations were failed since :meth:`arm`."""
        return self._fired

    def count(self, operation: Operation, file: FileKind | None = None) -> int:
        """How many such operations there were since :meth:`arm`, failed ones included."""
        with self._lock:
            return sum(n for (op, kind), n in self._counts.items() if op == operation and file in (None, kind))

    def fdatasync(self, fd: int) -> None:
        """``WalBarrier(path, fdatasync=disk.fdatasync)``: the barrier's sync counts and fails as one of the log."""
        fault = self.due("sync", "wal")
        if fault is not None:
            number = _errno(fault)
            raise OSError(number, os.strerror(number))
        data_sync(fd)

    def due(self, operation: Operation, file: FileKind) -> Fault | None:
        """Count one operation; the fault that has to happen to it."""
        with self._lock:
            self._last.errno = 0
            self._counts[operation, file] += 1
            plan = self._plan
            if plan is None or plan.operation != operation or plan.file not in (None, file):
                return None
            seen = sum(n for (op, kind), n in self._counts.items() if op == operation and plan.file in (None, kind))
            if not (seen >= plan.nth if plan.lasting else seen == plan.nth):
                return None
            self._fired += 1
            return plan

    def perform(self, operation: Operation, file: FileKind) -> None:
        """Count one operation and raise where it has to fail as a whole."""
        fault = self.due(operation, file)
        if fault is not None:
            raise self.error(fault)

    def error(self, fault: Fault) -> Exception:
        """What SQLite's own VFS would report; its errno is what :attr:`apsw.Connection.system_errno` then says."""
        self._last.errno = _errno(fault)
        if fault.kind == "busy":
            return apsw.exception_for(apsw.SQLITE_BUSY)
        if fault.operation == "write" and self._last.errno == errno.ENOSPC:
            return apsw.exception_for(apsw.SQLITE_FULL)
        return apsw.exception_for(CODES[fault.operation])

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        kind = _file_kind(flags[0])
        self.perform("open", kind)
        if kind == "db":
            self._ours.add(os.path.realpath(_path(name)) + "-shm")
        return _File(self, kind, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.perform("delete", _kind_by_name(filename))
        super().xDelete(filename, syncdir)

    def xGetLastError(self) -> tuple[int, str | None]:
        number = getattr(self._last, "errno", 0)
        return (number, None) if number else super().xGetLastError()

    def __enter__(self) -> FaultyVFS:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._shm_locks is not None:
            self._shm_locks.remove()
        self.unregister()

    def _refuse_lock(self, path: str) -> int:
        """The errno for a lock of the ``-shm`` file at ``path``; 0 lets it happen."""
        return errno.EAGAIN if path in self._ours and self.due("lock", "shm") else 0


class _File(apsw.VFSFile):
    def __init__(self, disk: FaultyVFS, kind: FileKind, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._kind = kind

    def xRead(self, amount: int, offset: int) -> bytes:
        fault = self._disk.due("read", self._kind)
        if fault is None:
            return super().xRead(amount, offset)
        if fault.kind == "short":
            return super().xRead(amount, offset)[: amount // 2]
        raise self._disk.error(fault)

    def xWrite(self, data: bytes, offset: int) -> None:
        fault = self._disk.due("write", self._kind)
        if fault is None:
            return super().xWrite(data, offset)
        if fault.kind == "short":
            super().xWrite(data[: len(data) // 2], offset)
        raise self._disk.error(fault)

    def xSync(self, flags: int) -> None:
        self._disk.perform("sync", self._kind)
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:
        self._disk.perform("truncate", self._kind)
        super().xTruncate(newsize)

    def xLock(self, level: int) -> None:
        self._disk.perform("lock", self._kind)
        super().xLock(level)


def _errno(fault: Fault) -> int:
    """A short write is what a disk that fills up does; a short read and a busy lock have no errno."""
    if fault.kind == "short":
        return errno.ENOSPC if fault.operation == "write" else 0
    numbers = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EACCES": errno.EACCES, "busy": 0}
    return numbers[fault.kind]


def _path(name: str | apsw.URIFilename | None) -> str:
    return name.filename() if isinstance(name, apsw.URIFilename) else name or ""


def _file_kind(flags: int) -> FileKind:
    if flags & apsw.SQLITE_OPEN_MAIN_DB:
        return "db"
    if flags & apsw.SQLITE_OPEN_WAL:
        return "wal"
    return "journal" if flags & apsw.SQLITE_OPEN_MAIN_JOURNAL else "temp"


def _kind_by_name(filename: str) -> FileKind:
    if filename.endswith("-wal"):
        return "wal"
    return "journal" if filename.endswith("-journal") else "db"


for _public in (Fault, FaultyVFS):
    _public.__module__ = "memoryd.testing"  # where the public finds them
