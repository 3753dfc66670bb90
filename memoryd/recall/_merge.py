"""Hits of several places as one list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from memoryd.core import Hit
from memoryd.recall._fold import fold_copies, newest_first

__all__ = ["merge"]


def merge(lists: Iterable[Sequence[Hit]], limit: int) -> list[Hit]:
    """The best ``limit`` hits of all lists, each event once, equal texts folded, the newest value of a key first.

    Scores are compared as they are.  Of a key's values, which may come from different places, only the newest is left as current.
    """
    best: dict[tuple[str, str, int | None], Hit] = {}
    for hit in (hit for hits in lists for hit in hits):
        same = (hit.kind, hit.id, hit.seq if hit.kind == "memory" else None)
        if same not in best or best[same].score < hit.score:
            best[same] = hit
    ranked = sorted(best.values(), key=lambda hit: -hit.score)
    return newest_first(fold_copies(_superseded(ranked)))[:limit]


def _superseded(hits: Sequence[Hit]) -> list[Hit]:
    """The hits, each value marked that a newer one of its key in the list replaces."""
    newest: dict[str, Hit] = {}
    for hit in hits:
        if hit.key is not None and (hit.key not in newest or (newest[hit.key].seq or 0) < (hit.seq or 0)):
            newest[hit.key] = hit
    return [_against(hit, newest[hit.key]) if hit.key is not None else hit for hit in hits]


def _against(hit: Hit, newest: Hit) -> Hit:
    if hit is newest or hit.superseded or hit.seq is None or hit.seq == newest.seq:
        return hit
    return attrs.evolve(hit, superseded=True, valid_until=newest.at)
