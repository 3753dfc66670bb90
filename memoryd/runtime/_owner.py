"""Who delivers to remote backends: one process of a profile, by an OS lock that dies with it; a heartbeat shows a stopped one."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import attrs

__all__ = ["Owner", "read_owner"]

_STALE = 5.0  # seconds without a heartbeat after which an owner is shown as stopped


class Owner:
    """The lock file ``owner.lock``.  The lock is what counts; the content (pid, wall-clock seconds) is for people and status."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "owner.lock"
        self._descriptor: int | None = None
        self._beaten = 0.0

    def hold(self) -> bool:
        """Be the owner, if nobody else is.  Never waits."""
        if self._descriptor is None and not self._take():
            return False
        self.beat()
        return True

    def _take(self) -> bool:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        self._beaten = 0.0
        return True

    def beat(self) -> None:
        """Write the heartbeat, at most once a second."""
        now = time.time()
        if self._descriptor is None or abs(now - self._beaten) < 1.0:
            return
        self._beaten = now
        os.pwrite(self._descriptor, f"{os.getpid():<10} {now:<20.3f}\n".encode(), 0)

    def holder(self) -> int | None:
        """The pid that holds the lock, as it wrote it."""
        seen = read_owner(self._path)
        return seen.pid if seen is not None else None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@attrs.frozen(slots=True)
class SeenOwner:
    """What the lock file says; ``stopped`` where its heartbeat is old."""

    pid: int
    stopped: bool


def read_owner(path: Path) -> SeenOwner | None:
    """The last owner of ``path``, or None where there was none or the file cannot be read."""
    try:
        pid, beaten = path.read_text("ascii").split()
        return SeenOwner(int(pid), abs(time.time() - float(beaten)) > _STALE)
    except (OSError, ValueError):
        return None
