"""Which stores a directory has had: a store that was there and is gone is a loss to be told, never a new beginning."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from memoryd.errors import StoreBroken, StoreError
from memoryd.store._moves import locked_directory
from memoryd.store._sync import write_private

__all__ = ["check_not_lost", "is_lost", "known_stores", "note_store"]

NAME = "stores.json"


def known_stores(directory: Path) -> dict[str, str]:
    """The stores that were made in ``directory``: file name to time, ISO 8601."""
    with suppress(OSError, ValueError):
        found = json.loads((directory / NAME).read_bytes())
        return {str(name): str(at) for name, at in found.items()}
    return {}


def note_store(path: Path, *, anew: bool = False) -> None:
    """Write down, once, that the store at ``path`` was made; ``anew``: that this is another one than before.

    Where the disk does not let us, the next open does: a store that works is not refused for that.
    """
    directory = path.parent
    if anew or path.name not in known_stores(directory):
        with suppress(StoreError), locked_directory(directory):
            known = {**known_stores(directory), path.name: datetime.now(UTC).isoformat()}
            write_private(directory / NAME, json.dumps(known).encode("ascii") + b"\n")


def is_lost(path: Path) -> bool:
    """True where the store at ``path`` was made and nothing of it is left."""
    return path.name in known_stores(path.parent) and (not path.exists() or path.stat().st_size == 0)


def check_not_lost(path: Path) -> None:
    """Raise :class:`~memoryd.errors.StoreBroken` where :func:`is_lost`."""
    if is_lost(path):
        error = StoreBroken(
            f"{path} was made on {known_stores(path.parent)[path.name]} and is {'empty' if path.exists() else 'gone'}: `memoryd restore` "
            "brings it back from a backup, `memoryd repair` begins it anew",
            path=str(path),
        )
        error.cause = "missing"
        raise error
