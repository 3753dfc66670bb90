"""Renames that belong together: written down first, so that what a killed process began is finished by whoever comes next."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memoryd.errors import StoreCorrupt, StoreLocked
from memoryd.store._errors import os_errors
from memoryd.store._sync import fsync_directory, write_private

__all__ = ["finish_moves", "locked_directory", "move_all"]

NAME = "moving.json"
PATIENCE = 5.0
TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST})


def move_all(root: Path, steps: Sequence[tuple[Path, Path]]) -> None:
    """Rename each ``(source, target)`` in order, all or, after a crash, the rest by :func:`finish_moves` of the same ``root``.

    Targets must not exist before; a target may be an earlier step's source.  Both are absolute.
    """
    with locked_directory(root):
        _finish(root)
        write_private(root / NAME, json.dumps([[str(source), str(target)] for source, target in steps]).encode("ascii"))
        _finish(root)


def finish_moves(root: Path) -> None:
    """Finish what a process began that is gone; cheap where nothing was begun."""
    if (root / NAME).exists():
        with locked_directory(root):
            _finish(root)


def _finish(root: Path) -> None:
    record = root / NAME
    with os_errors(record):
        if not record.exists():
            return
        for source, target in _read(record):
            _move(source, target)
        record.unlink()
    fsync_directory(root)


def _read(record: Path) -> list[tuple[Path, Path]]:
    try:
        return [(Path(source), Path(target)) for source, target in json.loads(record.read_bytes())]
    except (ValueError, TypeError) as error:
        raise StoreCorrupt(f"{record} is damaged; look at what it names, then remove it", path=str(record)) from error


def _move(source: Path, target: Path) -> None:
    """A source that is gone, or a target that is there, was moved before the crash."""
    if not os.path.lexists(source) or (os.path.lexists(target) and not target.is_dir()):
        return
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno not in TAKEN:
            raise
        return
    for directory in {source.parent, target.parent}:
        fsync_directory(directory)


@contextmanager
def locked_directory(directory: Path) -> Iterator[None]:
    """One process at a time, by flock on the directory itself, which needs no file and ends with its process."""
    with os_errors(directory):
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + PATIENCE
        while not _try_flock(fd):
            if time.monotonic() >= until:
                raise StoreLocked(f"{directory} is being changed by another process that does not finish", path=str(directory))
            time.sleep(0.005)
        yield
    finally:
        os.close(fd)


def _try_flock(fd: int) -> bool:
    import fcntl  # missing where memoryd does not run, and the import must work to say so

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
