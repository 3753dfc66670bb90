"""The connections that this process has open."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol
from weakref import WeakSet

__all__ = ["OPEN_HERE", "is_open_here"]


class _Open(Protocol):
    @property
    def path(self) -> Path: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def raw(self) -> Any: ...


OPEN_HERE: WeakSet[_Open] = WeakSet()


def is_open_here(path: Path) -> bool:
    """True where this process has a connection to the store at ``path``."""
    return any(connection.is_open and _is_same(connection.path, path) for connection in list(OPEN_HERE))


def _is_same(one: Path, other: Path) -> bool:
    """Also where a link leads from the one to the other."""
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False
