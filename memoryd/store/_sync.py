"""What reaches the disk, and who may read it: barriers, directories, private files.  The calls that differ by platform are here."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memoryd.errors import BarrierFailed, ForkedError, StoreBroken, StoreError, StoreFull
from memoryd.store._connection import wal_path
from memoryd.store._errors import os_errors
from memoryd.store._fork import rests

__all__ = ["WalBarrier", "data_sync", "free_bytes", "fsync_directory", "home_directory", "private_directory", "write_private"]

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600


if sys.platform == "darwin":

    def file_sync(fd: int) -> None:
        """Push the file to the platter; fsync alone stops at the drive's cache here."""
        import fcntl

        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.ENOTTY, errno.EINVAL):
                raise
            os.fsync(fd)  # the file system knows only fsync

    data_sync = file_sync

else:
    file_sync = os.fsync
    data_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)  # Windows lacks it, and is told so at open


class WalBarrier:
    """Makes what was committed to the store at ``path`` safe against power loss, without a checkpoint.

    It syncs the write-ahead log through a descriptor of its own.  (Only the ``-wal`` may be opened so: closing a descriptor of the
    ``.db`` or ``-shm`` file would drop SQLite's locks.)  Use it while a connection is open, and :meth:`close` it with the connection:
    then a log that vanishes or is replaced was removed by somebody else, and what is committed goes to a file without a name.
    Any thread may call it.  ``fdatasync`` is a seam for tests.

    After a failed sync the kernel may have dropped the pages and would call the next one a success, so every later :meth:`sync` fails
    too, until :meth:`recovered` is told that a TRUNCATE checkpoint has moved the log's content into the file.
    """

    def __init__(self, path: Path, fdatasync: Callable[[int], None] = data_sync) -> None:
        self.path = path
        self._pid = os.getpid()
        self._wal = wal_path(path)
        self._fdatasync = fdatasync
        self._lock = threading.Lock()
        self._fd: int | None = None
        self._problem: str | None = None
        self._lost = False
        rests(self)

    @property
    def failed(self) -> bool:
        """True from a failed sync until :meth:`recovered`, from a lost log until :meth:`close`."""
        return self._problem is not None

    @property
    def lost(self) -> bool:
        """True from when the log was seen to be removed or replaced until :meth:`close`: what is committed now goes nowhere."""
        return self._lost

    def sync(self) -> None:
        """Return when everything committed before the call is on the disk; raises :class:`~memoryd.errors.BarrierFailed`."""
        if os.getpid() != self._pid:
            raise ForkedError(f'{self.path}: this process was forked; open a runtime in the child (fork="reopen")')
        with self._lock:
            if self._problem is not None:
                raise self._error(self._problem)
            try:
                fd = self._current()
                if fd is not None:
                    self._fdatasync(fd)
            except OSError as error:
                self._problem = "an earlier sync failed and no checkpoint has succeeded since; check the disk"
                raise self._error(f"{error.strerror or error}; check the disk") from error
            if self._lost:
                self._problem = "it was removed or replaced while in use; end every program that uses it and open it again"
                raise self._error(self._problem)

    def recovered(self) -> None:
        """A TRUNCATE checkpoint succeeded: the log is empty and the file was synced, so barriers count again."""
        with self._lock:
            if not self._lost:
                self._problem = None

    def close(self) -> None:
        """Close the descriptor; the next :meth:`sync` begins anew with the log that is there then."""
        if os.getpid() != self._pid:
            return  # the lock may have been held by a thread that this process does not have
        with self._lock:
            fd, self._fd = self._fd, None
            self._problem, self._lost = None, False
            if fd is not None:
                os.close(fd)

    # -- around a fork, when the connections close ---------------------------------------------------------------------------------

    def hold(self, seconds: float) -> bool:
        return self._lock.acquire(timeout=seconds)

    def rest(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def wake(self) -> None:
        """The next :meth:`sync` opens the log that is there then."""

    def release(self) -> None:
        self._lock.release()

    def _current(self) -> int | None:
        """A descriptor of the log; None where there is none yet: before SQLite removes a log, it syncs the file."""
        try:
            there = os.stat(self._wal)
        except FileNotFoundError:
            self._lost = self._fd is not None
            return self._fd
        if self._fd is None:
            self._fd = os.open(self._wal, os.O_RDONLY | os.O_CLOEXEC)
            _sync_directory(self._wal.parent)  # a new log's name has to survive as well
        self._lost = not os.path.samestat(there, os.fstat(self._fd))
        return self._fd

    def _error(self, problem: str) -> BarrierFailed:
        return BarrierFailed(f"{self._wal} could not be synced: {problem}", path=str(self.path))


def fsync_directory(path: Path) -> None:
    """Make the names in the directory survive power loss."""
    with os_errors(path):
        _sync_directory(path)


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        file_sync(fd)
    finally:
        os.close(fd)


def private_directory(path: Path) -> None:
    """Create the directory and its missing parents, 0700 from the first instant, each synced into its parent.

    Directories that exist keep their mode: an operator may have widened it on purpose.
    """
    with os_errors(path):
        for directory in reversed([p for p in (path, *path.parents) if not p.exists()]):
            with suppress(FileExistsError):  # another process may be quicker
                os.mkdir(directory, PRIVATE_DIRECTORY)
            _sync_directory(directory.parent)
        usable = path.is_dir()
    if not usable:
        raise StoreBroken(f"{path} is in the way: it is not a directory; move it, or choose another home", path=str(path))


def home_directory(home: Path) -> None:
    """:func:`private_directory` for memoryd's home, whose place the user can choose: what stands against it is no fault of the disk."""
    try:
        private_directory(home)
    except StoreError as error:
        if isinstance(error, StoreFull) or _may_be_there(home):
            raise
        why = error.__cause__.strerror if isinstance(error.__cause__, OSError) else "what is there is no directory"
        said = f"{home}: the home cannot be made there ({why}); set MEMORYD_HOME or --home to a directory that this user can make"
        raise type(error)(said, path=str(home)) from error


def _may_be_there(home: Path) -> bool:
    try:
        return stat.S_ISDIR(home.stat().st_mode)
    except OSError as error:
        return isinstance(error, PermissionError)  # nobody can look


def write_private(path: Path, data: bytes) -> None:
    """Replace the file at ``path`` as one step: readers and crashes see the old content or the new.  Mode 0600, synced."""
    with os_errors(path):
        replace_file(path, data)


def replace_file(path: Path, data: bytes, mode: int = PRIVATE_FILE) -> None:
    """:func:`write_private` for a file that is none of a store's: with any ``mode``, and it raises :class:`OSError` as it comes."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _write_new(draft, data, mode)
        os.replace(draft, path)
    except BaseException:  # whatever it was, a draft is of no use to anybody
        draft.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        if mode != PRIVATE_FILE:
            os.fchmod(fd, mode)
        file.flush()
        file_sync(fd)


def free_bytes(path: Path) -> int:
    """Bytes that this user may still write on the file system of ``path``, which need not exist yet."""
    with os_errors(path):
        found = os.statvfs(next(p for p in (path, *path.absolute().parents) if p.exists()))
    return found.f_bavail * found.f_frsize
