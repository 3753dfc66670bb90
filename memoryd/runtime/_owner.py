"""Who delivers to remote backends: one process of a profile, by an OS lock that dies with it; a heartbeat shows a stopped one."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from weakref import WeakSet

import attrs
import trio

from memoryd.core import Value

__all__ = ["Owner", "read_owner"]

_POLL = 0.5  # seconds between tries to take over, and between looks at the heartbeat
_STALE = 5.0  # seconds without a heartbeat after which an owner is shown as stopped


class Owner:
    """The lock file ``owner.lock``.  The lock is what counts; the content (pid, wall-clock seconds) is for people and status."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "owner.lock"
        self._descriptor: int | None = None
        self._beaten = 0.0

    async def run(self) -> None:
        """The child of the nursery that takes over from a dead owner, and shows that this process is alive."""
        while True:
            self.hold()
            await trio.sleep(_POLL)

    def hold(self) -> bool:
        """Be the owner, if nobody else is.  Never waits."""
        if self._descriptor is None and not self._take():
            return False
        self._beat()
        return True

    def _take(self) -> bool:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        self._beaten = 0.0
        _owners().add(self)
        return True

    def _beat(self) -> None:
        """Write the heartbeat, at most once a second."""
        now = time.time()
        if self._descriptor is None or abs(now - self._beaten) < 1.0:
            return
        self._beaten = now
        with suppress(OSError):  # a full disk: the lock is what counts
            os.pwrite(self._descriptor, f"{os.getpid():<10} {now:<20.3f}\n".encode(), 0)

    def close(self) -> None:
        """Let another process take over."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def let_go(self) -> None:
        """In a forked child: close the inherited descriptor, which would keep the lock when the owner has died."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


@cache
def _owners() -> WeakSet[Owner]:
    """Those that a fork has to know; the first call, at the first lock that is taken, registers what a child does."""
    owners: WeakSet[Owner] = WeakSet()

    def after_in_child() -> None:
        for owner in list(owners):
            owner.let_go()

    os.register_at_fork(after_in_child=after_in_child)
    return owners


@attrs.frozen(slots=True, eq=False, repr=False)
class SeenOwner(Value):
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
