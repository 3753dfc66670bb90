"""The daemon's socket: one daemon a path, held by a lock of the operating system; what is stale is replaced, what is strange is left alone.

The lock file ``<socket>.lock`` is what counts.  Its content (pid, version) is for people: no pid is ever trusted, asked or signalled.
"""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

from memoryd import __version__
from memoryd.errors import ConfigError, DaemonRunning
from memoryd.store import os_errors, private_directory

__all__ = ["Claim", "BACKLOG"]

BACKLOG = 1024


class Claim:
    """The right to serve at ``path``, from the constructor until :meth:`release`.

    The directory is created 0700 where it is missing.  Raises :class:`~memoryd.errors.DaemonRunning` where another daemon has the
    right, :class:`~memoryd.errors.ConfigError` where the directory or what stands at ``path`` is not ours to use.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bound: tuple[int, int] | None = None
        private_directory(path.parent)
        _check_directory(path.parent)
        self._lock = _lock(path)

    def listen(self) -> socket.socket:
        """A listening socket at the path, 0600 from the first moment.  A stale socket there is replaced."""
        _make_room(self.path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with suppress(OSError):  # Linux gives the file the mode that the socket has before; elsewhere the directory keeps others out
                os.fchmod(listener.fileno(), 0o600)
            with os_errors(self.path):
                listener.bind(os.fspath(self.path))
                os.chmod(self.path, 0o600)
                self._bound = _identity(os.lstat(self.path))
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except BaseException:  # a socket that is not ours after all
            listener.close()
            raise
        return listener

    def is_intact(self) -> bool:
        """True while clients that come to the path come to us: our socket and our lock are still where they were put."""
        if self._bound is None:
            return True
        try:
            return _identity(os.lstat(self.path)) == self._bound and _is_at(self._lock, _lock_path(self.path))
        except OSError:
            return False

    def renew(self) -> None:
        """After somebody removed the socket, the lock or their directory: the right once more, or :class:`DaemonRunning`."""
        private_directory(self.path.parent)
        if not _is_at(self._lock, _lock_path(self.path)):
            lock = _lock(self.path)
            os.close(self._lock)
            self._lock = lock

    def unlink(self) -> bool:
        """Remove our socket, not another's, so that nobody new comes; False where we made none."""
        bound, self._bound = self._bound, None
        with suppress(OSError):
            if bound is not None and _identity(os.lstat(self.path)) == bound:
                os.unlink(self.path)
        return bound is not None

    def release(self) -> None:
        """Remove our socket, and let another daemon begin."""
        self.unlink()
        os.close(self._lock)


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _check_directory(directory: Path) -> None:
    found = os.stat(directory)
    if found.st_uid != os.geteuid():
        raise ConfigError(
            f"{directory}: belongs to user id {found.st_uid}, this process runs as {os.geteuid()}; set MEMORYD_SOCKET to a path in a "
            "directory of your own"
        )
    if found.st_mode & 0o022:
        raise ConfigError(f"{directory}: others may write there, and could put their own socket in its place; chmod go-w it")


def _lock(path: Path) -> int:
    """The descriptor of the lock file, locked.  Never waits."""
    place = _lock_path(path)
    while True:
        try:
            with os_errors(place):
                descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except IsADirectoryError:
            raise ConfigError(f"{place}: is in the way; move it") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            try:
                raise DaemonRunning(f"another daemon serves {path}{_holder(descriptor)}; end it, or choose another --socket")
            finally:
                os.close(descriptor)
        if _is_at(descriptor, place):  # else it was removed between the two calls, and another may lock a new one
            _say(descriptor)
            return descriptor
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    """What the holder of the lock wrote of itself, in brackets."""
    try:
        pid, version = os.pread(descriptor, 100, 0).decode("ascii").split()
        return f" (pid {int(pid)}, memoryd {version if version.replace('.', '').isalnum() else '?'})"
    except (OSError, ValueError):
        return ""


def _say(descriptor: int) -> None:
    with suppress(OSError):  # a full disk: the lock is what counts
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {__version__}\n".encode("ascii"), 0)


def _make_room(path: Path) -> None:
    """Remove a socket at which nobody listens; anything else that is there stays."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise ConfigError(f"{path}: is in the way and no socket, so it was left alone; move it, or choose another --socket")
    if _is_served(path):
        raise DaemonRunning(f"another program listens at {path}, such as a socket unit of systemd; end it, or choose another --socket")
    with suppress(FileNotFoundError):
        os.unlink(path)


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # its queue is full, or it is not ours to connect to: somebody is there
            return True
        return True
