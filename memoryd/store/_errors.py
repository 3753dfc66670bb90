"""The one edge where errors of SQLite and of the operating system become errors of memoryd.

Every message is one line: which file, what is wrong, what to do.  Mistakes of our own (bad SQL, wrong bindings, a broken constraint)
are bugs, not conditions of the world, and pass through unchanged.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import apsw

from memoryd.errors import (
    DeadlineExceeded,
    InvalidInput,
    MemorydError,
    StoreBroken,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
)
from memoryd.store._locks import lock_holder

__all__ = ["from_os_error", "from_sqlite", "os_errors", "raise_mapped"]

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})

DAMAGE = frozenset({apsw.SQLITE_IOERR_CORRUPTFS, apsw.SQLITE_IOERR_DATA})
"""I/O errors by which a file system or SQLite says that the bytes themselves are wrong."""

DAMAGED_INDEX = ("invalid fts5 file format", "vtable constructor failed")
"""How the full-text index reports its own damage, under the code that bad SQL has."""

BY_CLASS: dict[type[apsw.Error], type[StoreError]] = {
    apsw.BusyError: StoreLocked,
    apsw.LockedError: StoreLocked,
    apsw.ProtocolError: StoreLocked,
    apsw.FullError: StoreFull,
    apsw.ReadOnlyError: StoreReadOnly,
    apsw.PermissionsError: StoreReadOnly,
    apsw.AuthError: StoreReadOnly,
    apsw.CantOpenError: StoreBroken,
    apsw.IOError: StoreBroken,
    apsw.CorruptError: StoreCorrupt,
    apsw.NotADBError: StoreCorrupt,
    apsw.FormatError: StoreCorrupt,
}

ADVICE: dict[type[StoreError], str] = {
    StoreLocked: "is locked by another process; try again when it is done",
    StoreFull: "cannot grow, the disk or quota is full; free some space and try again",
    StoreReadOnly: "cannot be written by this user; check owner, mode and mount of the file and its directory",
    StoreCorrupt: "is damaged; nothing was deleted: run 'memoryd repair', which keeps the file, or restore a backup",
    StoreBroken: "could not be read or written; check that the disk is healthy and that the directory still exists",
}


def from_sqlite(error: apsw.Error, path: Path, system_errno: int = 0) -> MemorydError | None:
    """The error of memoryd that says what ``error`` means for the file at ``path``; None for a bug, which should be raised as it is.

    ``system_errno`` is the connection's last ``errno``: SQLite reports a full disk met outside of a plain write as an I/O error.
    """
    if isinstance(error, apsw.InterruptError):
        return DeadlineExceeded(f"{path}: the statement was stopped at its deadline")
    if isinstance(error, apsw.TooBigError):
        return InvalidInput("value", "is too large for one row (SQLite keeps at most 1,000,000,000 bytes)")
    kind = StoreCorrupt if str(error).startswith(DAMAGED_INDEX) else BY_CLASS.get(type(error))
    if kind is None:
        return None
    code: int = getattr(error, "extendedresult", 0)
    kind = _refined(kind, code, system_errno)
    if isinstance(error, apsw.CantOpenError) and kind is StoreBroken and _is_unwritable(path):
        kind = StoreReadOnly
    holder = lock_holder(path) if kind is StoreLocked else None
    detail = f"SQLite: {type(error).__name__}, code {code}" + (f"; the write lock is held by process {holder}" if holder else "")
    return kind(f"{path} {ADVICE[kind]} ({detail})", path=str(path))


def raise_mapped(error: apsw.Error, path: Path, system_errno: int = 0) -> NoReturn:
    """Raise what :func:`from_sqlite` says, with ``error`` as its cause; or ``error`` itself where it is a bug."""
    mapped = from_sqlite(error, path, system_errno)
    if mapped is None:
        raise error
    raise mapped from error


def _refined(kind: type[StoreError], code: int, system_errno: int) -> type[StoreError]:
    if code in DAMAGE:
        return StoreCorrupt
    if kind is StoreReadOnly and code == apsw.SQLITE_READONLY_DBMOVED:
        return StoreBroken
    if kind is StoreBroken:
        return _kind_of_errno(system_errno)
    return kind


def _kind_of_errno(number: int | None) -> type[StoreError]:
    if number in NO_SPACE:
        return StoreFull
    if number in NOT_ALLOWED:
        return StoreReadOnly
    return StoreBroken


def _is_unwritable(path: Path) -> bool:
    """SQLite tries read-only after a refusal, so its last errno does not tell; the access rights do."""
    effective = os.access in os.supports_effective_ids
    try:
        return any(p.exists() and not os.access(p, os.W_OK, effective_ids=effective) for p in (path, path.parent))
    except PermissionError:
        return True


def from_os_error(error: OSError, path: Path) -> StoreError:
    """The error of memoryd that says what ``error`` means for the file or directory at ``path``."""
    kind = _kind_of_errno(error.errno)
    return kind(f"{path} {ADVICE[kind]} ({error.strerror or error})", path=str(path))


@contextmanager
def os_errors(path: Path) -> Iterator[None]:
    """Raise every ``OSError`` of the block as a :class:`StoreError` about ``path``."""
    try:
        yield
    except OSError as error:
        raise from_os_error(error, path) from error
