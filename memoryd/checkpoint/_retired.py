"""Rows that were erased before the key was renewed: their digests are known only by what stands for them under the new key."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from memoryd.checkpoint._pages import Digests
from memoryd.core import DIGEST_SIZE, Value, retired_forms

__all__ = ["Retired"]


@attrs.frozen(slots=True, eq=False, repr=False)
class Retired(Value):
    """``known``: what stands for erased rows in this archive.  ``key`` is the profile's, ``earlier`` those before it, the latest first."""

    key: bytes = attrs.field(repr=False)
    earlier: tuple[bytes, ...] = attrs.field(repr=False)
    known: frozenset[bytes] = attrs.field(repr=False)

    def __bool__(self) -> bool:
        return bool(self.earlier and self.known)

    def seen_as(self, stored: bytes, contents: bytes, rows: Sequence[bytes]) -> bytes:
        """``contents``, the packed digests of ``rows``, with those of erased rows as the packed digests ``stored`` have them, as far as
        the two agree."""
        seen = bytearray(contents)
        for index, row in enumerate(rows):
            place = slice(index * DIGEST_SIZE, (index + 1) * DIGEST_SIZE)
            there = stored[place]
            if there != seen[place]:
                if there not in self.known or there not in self._forms(row):
                    break
                seen[place] = there
        return bytes(seen)

    def _forms(self, row: bytes) -> list[bytes]:
        return retired_forms(self.key, self.earlier, lambda key: Digests.of(key).row(row))
