"""The source port: where a history can be imported from.

Entry points in the group ``memoryd.sources`` name objects that follow :class:`Source`; the entry point's name is the word on the command
line.  An event's id is made from what the event is (:func:`import_id`), so that the same content is taken in once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from memoryd.core import Event
from memoryd.errors import InvalidInput

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Source", "find_source", "import_id", "source_names"]

GROUP = "memoryd.sources"


class Source(Protocol):
    """A kind of history."""

    @property
    def help(self) -> str:
        """What it reads, in one line."""
        ...

    def events(self, path: Path) -> Iterator[Event]:
        """What is said in the file or the folder ``path``, in order, with its original times and with ids by :func:`import_id`.

        A scope without a user gets the user who imports, and one whose user is ``/cron`` gets that user's ``/cron``.  Turns name their
        session.  Reads only ``path``, lazily, and passes over what
        is no record.  Raises :class:`~memoryd.errors.InvalidInput` where ``path`` cannot be read or is nothing of this kind.
        """
        ...


def import_id(*parts: str) -> bytes:
    """The id of the event that ``parts`` stand for (the source's name, then the record's own id or place): 16 bytes, always the same."""
    digest = hashlib.blake2b(digest_size=16, person=b"memoryd import")
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.digest()


def source_names() -> list[str]:
    """The names of all sources; imports none."""
    return sorted(_points())


def find_source(name: str) -> Source:
    """The source of that name; raises :class:`~memoryd.errors.InvalidInput` that lists those there are."""
    points = _points()
    if name not in points:
        raise InvalidInput("source", f"{name!r} is none; there are {', '.join(sorted(points)) or 'none'}")
    return cast(Source, points[name].load())


def _points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # 10 ms, which only an import pays

    return {point.name: point for point in entry_points(group=GROUP)}
