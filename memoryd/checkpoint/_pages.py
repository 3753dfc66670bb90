"""Pages: runs of rows in a chain, as packed arrays.  Pure.

The pages of a chain form a tree.  A page follows the first ``at`` rows of its parent, so a grown transcript adds a page to the tip, and a
transcript that was changed earlier forks in the middle of one.  What a page says never changes: ``contents`` are the digests of the raw
rows, ``nodes`` the identity chain.  Where its rows lie (``places``) and whether they are erased (``flags``) does change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

import attrs

from memoryd.core import DIGEST_SIZE, Digest, Value, digester, fence_marker, keyed

__all__ = [
    "ASSISTANT", "DEGRADED", "ERASED", "EVIDENCE", "NOWHERE", "OWN", "USER",
    "Digests", "Page", "Place", "Position", "common_rows", "count_rows", "pack_places", "root_of", "unpack_places",
]  # fmt: skip

USER: Final = 1
ASSISTANT: Final = 2
DEGRADED: Final = 4
ERASED: Final = 8
EVIDENCE: Final = USER | ASSISTANT

_PLACE = Struct("<QII")
_HAS = {mask: bytes(1 if flags & mask else 0 for flags in range(256)) for mask in (EVIDENCE, DEGRADED, ERASED)}


class Place(NamedTuple):
    """Where the bytes of a row lie: ``length`` bytes from ``offset`` of the plain content of ``pack`` (0: erased)."""

    pack: int
    offset: int
    length: int


NOWHERE: Final = Place(0, 0, 0)
OWN: Final = -1
"""The pack of a page that is not stored yet."""


@attrs.frozen(slots=True, eq=False, repr=False)
class Digests(Value):
    """The keyed digests of one archive, each for its own purpose; ``marker`` is that of the profile's fence, which no identity covers."""

    marker: str
    row: Digest
    page: Digest
    pack: Digest
    identity: Digest
    node: Digest
    root: Digest
    checkpoint: Digest

    @classmethod
    def of(cls, profile_key: bytes) -> Digests:
        key = keyed(profile_key, "archive")
        _, *named = attrs.fields(cls)
        return cls(fence_marker(profile_key), *(digester(key, f"archive {field.name[:8]}") for field in named))


@attrs.frozen(slots=True, eq=False, repr=False)
class Position(Value):
    """A point in a chain: after the first ``at`` rows of ``page``; ``digest`` covers everything before it, ``node`` is the identity
    node there, and ``rows``, ``evidence``, ``degraded`` count what comes before."""

    page: int
    at: int
    digest: bytes
    node: bytes
    rows: int = 0
    evidence: int = 0
    degraded: int = 0


def root_of(digests: Digests, user: bytes, session: bytes, kind: int) -> Position:
    """Where a chain begins: nodes of two sessions differ from here on, so that erasing in one never reaches the other."""
    start = digests.root(user, session, bytes([kind]))
    return Position(0, 0, start, start)


@attrs.frozen(slots=True, eq=False, repr=False)
class Page(Value):
    """One page as stored; the fields are the columns of the table."""

    id: int
    chain: int
    parent: int
    at: int
    created: int
    first: int
    evidence: int
    degraded: int
    base: bytes
    node: bytes
    contents: bytes
    nodes: bytes
    places: bytes
    flags: bytes

    def __len__(self) -> int:
        return len(self.flags)

    def node_at(self, index: int) -> bytes:
        """The node of row ``index``; of -1: the one before this page."""
        return self.nodes[index * DIGEST_SIZE : (index + 1) * DIGEST_SIZE] if index >= 0 else self.node

    def content_at(self, index: int) -> bytes:
        return self.contents[index * DIGEST_SIZE : (index + 1) * DIGEST_SIZE]

    def digest_at(self, digests: Digests, at: int) -> bytes:
        """The digest of everything up to the first ``at`` rows of this page."""
        return digests.page(self.base, self.contents[: at * DIGEST_SIZE], self.nodes[: at * DIGEST_SIZE])

    def position(self, digests: Digests, at: int) -> Position:
        flags = self.flags[:at]
        return Position(
            self.id, at, self.digest_at(digests, at), self.node_at(at - 1), self.first + at,
            self.evidence + count_rows(flags, EVIDENCE), self.degraded + count_rows(flags, DEGRADED),
        )  # fmt: skip


def count_rows(flags: bytes, mask: int) -> int:
    """How many rows have one of the bits of ``mask`` (EVIDENCE, DEGRADED or ERASED)."""
    return flags.translate(_HAS[mask]).count(1)


def common_rows(left: bytes, right: bytes) -> int:
    """How many rows two packed arrays of digests have in common from the start."""
    low, high = 0, min(len(left), len(right)) // DIGEST_SIZE
    if left[: high * DIGEST_SIZE] == right[: high * DIGEST_SIZE]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if left[low * DIGEST_SIZE : middle * DIGEST_SIZE] == right[low * DIGEST_SIZE : middle * DIGEST_SIZE]:
            low = middle
        else:
            high = middle
    return low


def pack_places(places: Iterable[tuple[int, int, int]], own: int = 0) -> bytes:
    """The packed array; a place in pack :data:`OWN` is one in the pack ``own``."""
    return b"".join([_PLACE.pack(own if pack == OWN else pack, offset, length) for pack, offset, length in places])


def unpack_places(packed: bytes) -> Iterator[Place]:
    return map(Place._make, _PLACE.iter_unpack(packed))
