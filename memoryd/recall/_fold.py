"""From scored things to what is shown: one line for equal ones, the newest value of a key first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from memoryd.core import Hit

__all__ = ["fold_copies", "newest_first"]


def fold_copies(hits: Iterable[Hit]) -> list[Hit]:
    """Equal texts (but for case and spacing) become one hit with a count, in the place of the best of them.

    Of a memory's equal values the one that holds now is shown.
    """
    folded: dict[tuple[str, str | None, str], Hit] = {}
    for hit in hits:
        sort = (hit.kind, hit.key, " ".join(hit.text.casefold().split()))
        kept = folded.get(sort)
        folded[sort] = hit if kept is None else _joined(kept, hit)
    return list(folded.values())


def _joined(kept: Hit, other: Hit) -> Hit:
    shown = other if kept.superseded and not other.superseded else kept
    return attrs.evolve(shown, score=kept.score, copies=kept.copies + other.copies)


def newest_first(hits: Sequence[Hit]) -> list[Hit]:
    """The hits of one key change places among themselves, so that its newest value comes first; scores stay with the places."""
    ordered = list(hits)
    places: dict[str, list[int]] = {}
    for place, hit in enumerate(hits):
        if hit.key is not None:
            places.setdefault(hit.key, []).append(place)
    for slots in places.values():
        values = sorted((hits[slot] for slot in slots), key=lambda hit: (hit.superseded, -(hit.seq or 0)))
        for slot, hit in zip(slots, values, strict=True):
            ordered[slot] = attrs.evolve(hit, score=hits[slot].score)
    return ordered
