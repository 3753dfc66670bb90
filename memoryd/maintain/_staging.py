"""A place for files in the making: beside where they belong, so that one rename puts them there."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from memoryd.store import os_errors, private_directory

__all__ = ["DISCARDED", "STAGING", "aside", "discard", "staging", "sweep"]

STAGING = "staging-"
DISCARDED = "discarded-"


@contextmanager
def staging(parent: Path, prefix: str = STAGING) -> Iterator[Path]:
    """A private directory below ``parent`` that is gone at the end.  What killed processes left of theirs goes first."""
    sweep(parent, prefix)
    path, fd = _locked_new(parent, prefix)
    try:
        private_directory(path / "work")  # the lock on ``path`` itself is in use
        yield path / "work"
    finally:
        os.close(fd)
        shutil.rmtree(path, ignore_errors=True)


def _locked_new(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new directory, and the descriptor whose lock says that somebody works on it."""
    path = parent / f"{prefix}{secrets.token_hex(8)}"
    private_directory(path)
    with os_errors(path):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(fd, fcntl.LOCK_EX)
    if path.exists():
        return path, fd
    os.close(fd)  # it was swept before it was locked
    return _locked_new(parent, prefix)


def sweep(parent: Path, prefix: str) -> None:
    """Remove those directories that nobody works on any more."""
    for path in parent.glob(f"{prefix}*"):
        with suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(fd)


def discard(directory: Path) -> Path:
    """A new name beside ``directory``, under which it can be removed in peace: whoever comes next removes the rest."""
    return directory.with_name(f"{DISCARDED}{directory.name}-{secrets.token_hex(4)}")


def aside(path: Path) -> Path:
    """A new name beside ``path`` under which it is kept."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return path.with_name(f"{path.name}.before-{stamp}-{secrets.token_hex(2)}")
