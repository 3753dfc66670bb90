"""Packs: raw rows joined and compressed."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping

import attrs

from memoryd.checkpoint._pages import Place
from memoryd.core import Value
from memoryd.errors import StoreCorrupt
from memoryd.store import Connection

__all__ = ["Pack", "PackReader", "blanked", "compressed", "plain_of"]

_RAW, _ZLIB = 0, 1
_LEVEL = 1
_CACHED_BYTES = 8 << 20


@attrs.frozen(slots=True, eq=False, repr=False)
class Pack(Value):
    """A pack as stored: ``data`` in ``codec``, ``size`` bytes when plain."""

    codec: int
    size: int
    data: bytes = attrs.field(repr=False)


def compressed(plain: bytes) -> Pack:
    """``plain`` as it will be stored."""
    data = zlib.compress(plain, _LEVEL)
    return Pack(_ZLIB, len(plain), data) if len(data) < len(plain) else Pack(_RAW, len(plain), plain)


def plain_of(pack: Pack) -> bytes:
    """The rows' bytes.  Raises ``ValueError`` for what does not decompress to its size."""
    try:
        plain = pack.data if pack.codec == _RAW else zlib.decompress(pack.data)
    except zlib.error as error:
        raise ValueError(f"does not decompress: {error}") from error
    if len(plain) != pack.size:
        raise ValueError(f"holds {len(plain)} bytes instead of {pack.size}")
    return plain


def blanked(plain: bytes, keep: Iterable[tuple[int, int]]) -> bytes:
    """``plain`` with zeros everywhere but in the ranges (offset, length) of ``keep``, so that other rows stay in their places."""
    result = bytearray(len(plain))
    for offset, length in keep:
        result[offset : offset + length] = plain[offset : offset + length]
    return bytes(result)


class PackReader:
    """Reads rows from their packs through one connection, with the latest plain packs kept in memory."""

    def __init__(self, connection: Connection, sql: Mapping[str, str]) -> None:
        self._connection = connection
        self._sql = sql
        self._cache: OrderedDict[int, bytes] = OrderedDict()
        self._cached = 0

    def rows(self, places: Iterable[Place]) -> list[bytes | None]:
        """The bytes of each place; None for an erased one.  Raises :class:`StoreCorrupt` for a pack that is missing or damaged."""
        found: list[bytes | None] = []
        current, plain = 0, b""
        for pack, offset, length in places:
            if pack != current and pack:
                current, plain = pack, self._plain(pack)
            found.append(plain[offset : offset + length] if pack else None)
        return found

    def _plain(self, number: int) -> bytes:
        plain = self._cache.get(number)
        if plain is None:
            plain = self._read(number)
            self._remember(number, plain)
        self._cache.move_to_end(number)
        return plain

    def _remember(self, number: int, plain: bytes) -> None:
        self._cache[number] = plain
        self._cached += len(plain)
        while self._cached > _CACHED_BYTES and len(self._cache) > 1:
            self._cached -= len(self._cache.popitem(last=False)[1])

    def _read(self, number: int) -> bytes:
        row = self._connection.one(self._sql["read_pack"], (number,))
        try:
            if row is None:
                raise ValueError("is missing")
            return plain_of(Pack(*row))
        except ValueError as error:
            raise StoreCorrupt(
                f"{self._connection.path}: pack {number} {error}; restore the archive from a backup, or from its second place",
                path=str(self._connection.path),
            ) from error
