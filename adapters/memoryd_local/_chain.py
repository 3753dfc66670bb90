"""The history of a key, worked out from its changes.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

__all__ = ["Change", "Link", "link"]

Change: TypeAlias = tuple[int, bool, int]
"""(event, whether it is a deletion, time), in order of acceptance."""
Link: TypeAlias = tuple[int, int, int | None, int]
"""(lifetime, created, valid until, event)."""


def link(changes: Sequence[Change]) -> Iterator[Link]:
    """For each change its lifetime (the first store since the key last began), when that began, and until when the value held."""
    lifetime, created, alive = 0, 0, False
    for number, (event, deleted, at) in enumerate(changes):
        if not alive:
            lifetime, created = event, at
        alive = not deleted
        until = changes[number + 1][2] if number + 1 < len(changes) else None
        yield lifetime, created, until, event
