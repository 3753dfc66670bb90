"""Having a profile for oneself: nobody has its stores open, and nobody opens them, until the work on its files is done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memoryd.errors import StoreLocked
from memoryd.store._errors import os_errors
from memoryd.store._here import is_open_here
from memoryd.store._locks import lock_file

__all__ = ["alone", "check_attended"]

NAME = "maintenance.lock"
PATIENCE = 0.5
SHARED_FIRST, SHARED_SIZE = 0x40000002, 510
"""The bytes that every connection of SQLite keeps locked in a file in WAL mode; part of its file format."""

_mine: set[Path] = set()


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Keep every process out of the stores in ``directory``.

    Raises :class:`~memoryd.errors.StoreLocked` where one has them open, or works on them.  Whoever opens one looks at our lock after
    SQLite has taken its own, and we look at SQLite's after we have taken ours: one of the two sees the other.
    """
    with _maintenance_lock(directory):
        for path in sorted(directory.glob("*.db")):
            if _is_open(path):
                remedy = "end the programs that use this profile (also the daemon), then try again"
                raise StoreLocked(f"{path} is in use; {remedy}", path=str(path))
        yield


def check_attended(directory: Path) -> None:
    """Raise :class:`~memoryd.errors.StoreLocked` where another process has the stores of ``directory`` for itself."""
    import fcntl  # missing where memoryd does not run, and the import must work to say so

    if directory in _mine:
        return
    try:
        fd = os.open(directory / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return  # nobody ever had, or it cannot be told: then the stores will tell
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreLocked(f"{directory} is being restored, repaired or moved; try again when that is done", path=str(directory)) from None
    finally:
        os.close(fd)


@contextmanager
def _maintenance_lock(directory: Path) -> Iterator[None]:
    path = directory / NAME
    with os_errors(path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not lock_file(fd, PATIENCE):  # whoever looks whether somebody is alone holds the lock for an instant
            problem = "is being restored, repaired or moved by another process"
            raise StoreLocked(f"{directory} {problem}", path=str(directory))
        _mine.add(directory)
        try:
            yield
        finally:
            _mine.discard(directory)
    finally:
        os.close(fd)


def _is_open(path: Path) -> bool:
    """True where any process, this one too, has a connection to the store at ``path``."""
    import fcntl

    if is_open_here(path):  # closing a descriptor of our own would drop the locks of that connection
        return True
    with os_errors(path):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, SHARED_SIZE, SHARED_FIRST)
    except (BlockingIOError, PermissionError):
        return True
    else:
        return False
    finally:
        with suppress(OSError):
            os.close(fd)
