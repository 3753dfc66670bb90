"""A thin class around ``apsw.Connection``: pragmas asserted, errors of memoryd, refusal after a fork."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias
from urllib.parse import quote

import apsw

from memoryd.errors import ClosedError, DeadlineExceeded, ForkedError, StoreBroken, StoreError, StoreLocked
from memoryd.store._alone import check_attended
from memoryd.store._errors import os_errors, raise_mapped
from memoryd.store._fork import OUTSIDE, forked_badly, rests
from memoryd.store._here import OPEN_HERE
from memoryd.store._pragmas import Options, apply_pragmas

__all__ = ["CheckpointMode", "Connection", "Params", "Row", "connect", "wal_path", "wal_size"]

Row: TypeAlias = tuple[Any, ...]
Params: TypeAlias = Sequence[Any] | Mapping[str, Any]
CheckpointMode: TypeAlias = Literal["PASSIVE", "FULL", "RESTART", "TRUNCATE"]

MODES: dict[CheckpointMode, int] = {
    "PASSIVE": apsw.SQLITE_CHECKPOINT_PASSIVE,
    "FULL": apsw.SQLITE_CHECKPOINT_FULL,
    "RESTART": apsw.SQLITE_CHECKPOINT_RESTART,
    "TRUNCATE": apsw.SQLITE_CHECKPOINT_TRUNCATE,
}
STEPS = 1000
"""Virtual machine steps between two looks at the clock: about 10 us of work."""


def wal_path(path: Path) -> Path:
    """The write-ahead log beside the database at ``path``."""
    return path.with_name(path.name + "-wal")


def wal_size(path: Path) -> int:
    """Bytes in the write-ahead log of the database at ``path``; 0 where there is none."""
    try:
        return os.stat(wal_path(path)).st_size
    except FileNotFoundError:
        return 0


class Connection:
    """One connection to one store file.  Use it from one thread at a time; the caller serialises.

    Every method raises :class:`~memoryd.errors.StoreError` (with ``path`` and ``__cause__``) for what is wrong with the file, and
    :class:`~memoryd.errors.ForkedError` in a process that was forked after the connection was opened.  ``raw`` is the
    ``apsw.Connection`` for what this class does not offer; its errors are apsw's.
    """

    __slots__ = ("__weakref__", "_deadline", "_lock", "_pid", "_reading", "_reopen", "_state", "path", "raw")

    def __init__(self, raw: apsw.Connection, path: Path, reopen: Callable[[], apsw.Connection]) -> None:
        self.raw = raw
        self.path = path
        self._pid = os.getpid()
        self._deadline: float | None = None
        self._reopen = reopen
        self._lock = threading.RLock()  # held in a call and a transaction, so that a fork can wait for their end
        self._reading = 0
        self._state: Literal["open", "asleep", "closed"] = "open"
        OPEN_HERE.add(self)
        rests(self)

    def insert(self, sql: str, params: Params = ()) -> int:
        """Run one INSERT and return its rowid: the hot path, a bare apsw call and a pid check."""
        if os.getpid() != self._pid:
            raise _forked(self.path)
        try:
            with self._lock:
                self.raw.execute(sql, params)
                return self.raw.last_insert_rowid()
        except apsw.Error as error:
            self._fail(error)

    def run(self, sql: str, params: Params = ()) -> int:
        """Run one statement that returns no rows; how many rows the latest INSERT, UPDATE or DELETE changed."""
        if os.getpid() != self._pid:
            raise _forked(self.path)
        try:
            with self._lock:
                self.raw.execute(sql, params)
                return self.raw.changes()
        except apsw.Error as error:
            self._fail(error)

    def execute(self, sql: str, params: Params = ()) -> Iterator[Row]:
        """Run the statement and iterate over its rows.  Rows not taken leave the statement, and its read lock, open."""
        if os.getpid() != self._pid:
            raise _forked(self.path)
        try:
            with self._lock:
                cursor = self.raw.execute(sql, params)
        except apsw.Error as error:
            self._fail(error)
        return self._rows(cursor)

    def executemany(self, sql: str, rows: Iterable[Params]) -> None:
        """Run one statement for each of ``rows``; inside a transaction this is the fastest way to write many."""
        if os.getpid() != self._pid:
            raise _forked(self.path)
        try:
            with self._lock:
                self.raw.executemany(sql, rows)
        except apsw.Error as error:
            self._fail(error)

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        """Every row of the statement."""
        if os.getpid() != self._pid:
            raise _forked(self.path)
        try:
            with self._lock:
                return self.raw.execute(sql, params).fetchall()
        except apsw.Error as error:
            self._fail(error)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """The first row of the statement or None.  It is run to its end, so write queries that yield at most one row."""
        rows = self.all(sql, params)
        return rows[0] if rows else None

    @contextmanager
    def transaction(self, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[None]:
        """Commit at the end of the block; roll back on any exception, also where COMMIT itself fails.

        A COMMIT that fails while syncing (``synchronous=FULL``) is in doubt until the next one: its rows may come back after a crash.
        Write so that doing it again does no harm.
        """
        self._check()
        with self._lock:
            self.run(f"BEGIN {kind}")
            try:
                yield
                self.run("COMMIT")
            except BaseException:  # also a cancellation: a transaction never outlives its block
                self._roll_back()
                raise

    @contextmanager
    def progress(self, deadline: float | None) -> Iterator[None]:
        """Stop statements of the block at ``deadline`` (``time.monotonic()`` seconds) with :class:`DeadlineExceeded`; None: never.

        Nested, the earlier deadline wins.  Waiting for a lock is not interrupted: bound it with :meth:`set_busy_ms`.
        """
        self._check()
        outer = self._deadline
        inner = min((d for d in (outer, deadline) if d is not None), default=None)
        self._stop_at(inner)
        try:
            if inner is not None and time.monotonic() >= inner:
                raise DeadlineExceeded(f"{self.path}: the deadline had passed before the work began")
            yield
        finally:
            if os.getpid() == self._pid:
                self._stop_at(outer)

    def checkpoint(self, mode: CheckpointMode = "PASSIVE") -> tuple[int, int]:
        """Move pages from the write-ahead log into the file; (pages in the log, pages moved).

        PASSIVE never waits and may move less than all.  The others wait ``busy_ms`` for readers, then raise
        :class:`~memoryd.errors.StoreLocked`; TRUNCATE leaves the log empty.
        """
        self._check()
        try:
            with self._lock:
                return self.raw.wal_checkpoint(mode=MODES[mode])
        except apsw.Error as error:
            self._fail(error)

    def set_busy_ms(self, milliseconds: int) -> None:
        """How long the next statements wait for another process's lock."""
        self._check()
        try:
            with self._lock:
                self.raw.set_busy_timeout(milliseconds)
        except apsw.Error as error:
            self._fail(error)

    @property
    def last_rowid(self) -> int:
        """The rowid of this connection's latest INSERT."""
        return self.raw.last_insert_rowid()

    @property
    def is_open(self) -> bool:
        """True until :meth:`close`."""
        return self._state != "closed"

    @property
    def in_transaction(self) -> bool:
        """True between BEGIN and COMMIT or ROLLBACK.  SQLite rolls back by itself on some errors."""
        return self.raw.in_transaction

    def close(self) -> None:
        """Close the connection; more than once is fine.  After a fork this does nothing: the handles are the parent's.

        The last connection moves the write-ahead log into the file.  Where that fails nothing is lost: the next open reads the log.
        """
        if os.getpid() == self._pid:
            with self._lock, suppress(apsw.Error):
                self._state = "closed"
                self.raw.close()

    # -- around a fork -----------------------------------------------------------------------------------------------------------

    def hold(self, seconds: float) -> bool:
        """Wait for the end of what runs and keep everybody else out; False where it takes longer, or this thread is inside of it."""
        if not self._lock.acquire(timeout=seconds):
            return False
        if self._state == "open" and (self._reading or self.raw.in_transaction):
            self._lock.release()
            return False
        return True

    def rest(self) -> None:
        """Close the file, leaving its log as it is."""
        if self._state == "open":
            self._state = "asleep"
            with suppress(apsw.Error):
                self.raw.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                self.raw.close(True)

    def wake(self) -> None:
        """Open the file again; where that does not work now, the next call tries."""
        if self._state == "asleep":
            with suppress(StoreError):
                self._open_again()

    def release(self) -> None:
        self._lock.release()

    def _open_again(self) -> None:
        with self._lock:
            self.raw = self._reopen()
            self._state = "open"
            self._stop_at(self._deadline)

    def _rows(self, cursor: apsw.Cursor) -> Iterator[Row]:
        self._reading += 1
        try:
            yield from cursor
        except apsw.Error as error:
            self._fail(error)
        finally:
            self._reading -= 1

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise _forked(self.path)

    def _fail(self, error: apsw.Error) -> NoReturn:
        if isinstance(error, apsw.ConnectionClosedError):
            if self._state == "asleep":
                self._open_again()
                raise StoreLocked(f"{self.path}: it was closed for a fork: try again", path=str(self.path)) from error
            raise ClosedError(f"{self.path}: the store was closed; open a new runtime") from error
        raise_mapped(error, self.path, self.raw.system_errno)

    def _roll_back(self) -> None:
        if os.getpid() != self._pid or not self.raw.in_transaction:
            return
        with suppress(apsw.Error):  # SQLite leaves the transaction even then, and the first error is the one to tell
            self.raw.execute("ROLLBACK")

    def _stop_at(self, deadline: float | None) -> None:
        self._deadline = deadline
        handler = None if deadline is None else lambda: time.monotonic() >= deadline
        try:
            with self._lock:
                self.raw.set_progress_handler(handler, STEPS)
        except apsw.Error as error:
            self._fail(error)


def connect(path: Path, options: Options, *, vfs: str | None = None) -> Connection:
    """Open the store file at ``path``, which :func:`prepare` made, with every pragma of ``options`` set and asserted."""
    with os_errors(path):
        there = path.exists()
    if not there:
        raise StoreBroken(f"{path} does not exist; was its directory removed?  Open the profile again to create it", path=str(path))
    connection = open_connection(store_uri(path), path, options, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI, vfs)
    try:
        check_attended(path.parent)
    except StoreLocked:
        connection.close()
        raise
    return connection


def store_uri(path: Path, mode_of: Path | None = None) -> str:
    """The URI of the file at ``path``; SQLite creates it with the mode of ``mode_of``, so that there is no instant with a wider one."""
    uri = f"file://{quote(os.fsencode(path.absolute()))}"
    return uri if mode_of is None else f"{uri}?modeof={quote(os.fsencode(mode_of.absolute()))}"


def open_connection(uri: str, path: Path, options: Options, flags: int, vfs: str | None) -> Connection:
    """``uri`` names the file at ``path``; ``flags`` are SQLite's open flags."""
    if forked_badly():
        raise ForkedError(f"{path}: this process was forked in the middle of a transaction: fork again, or fork before memoryd is opened")
    again = flags & ~apsw.SQLITE_OPEN_CREATE
    with OUTSIDE:
        return Connection(_open(uri, path, options, flags, vfs), path, lambda: _open(uri, path, options, again, vfs))


def _open(uri: str, path: Path, options: Options, flags: int, vfs: str | None) -> apsw.Connection:
    try:
        raw = apsw.Connection(uri, flags, vfs)
    except apsw.Error as error:
        raise_mapped(error, path)
    try:
        apply_pragmas(raw, options)
    except BaseException as error:  # whatever it was, nobody else closes this one
        number = raw.system_errno
        raw.close(True)
        if isinstance(error, apsw.Error):
            raise_mapped(error, path, number)
        raise
    return raw


def _forked(path: Path) -> ForkedError:
    return ForkedError(f'{path}: this process was forked after the store was opened; open a runtime in the child (fork="reopen")')


def _leak_in_child() -> None:
    """Never let the child close what it inherited: SQLite's close would checkpoint and unlock files that the parent still uses."""
    inherited = [connection.raw for connection in OPEN_HERE]
    if inherited:
        import ctypes  # only a forked child with open stores pays for it

        for raw in inherited:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(raw))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leak_in_child)
