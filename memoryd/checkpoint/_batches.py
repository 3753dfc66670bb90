"""Host rows become batches of canonical bytes and digests, and what they say.  Pure apart from the clock that it is given."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import attrs

from memoryd.checkpoint._pages import ASSISTANT, DEGRADED, USER, Digests
from memoryd.core import Digest, Value, canonical_bytes, evidence_of, raw_row, readable

__all__ = ["BATCH_BYTES", "Batch", "Encode", "encode_row", "evidence_rows", "row_batches", "source_lines", "source_rows"]

BATCH_BYTES = 128 * 1024
_BATCH_ROWS = 4096
_RETRIES = 100
_CLOCK_EVERY = 64

Encode: TypeAlias = Callable[[Any], tuple[bytes, bool]]
"""The bytes of one row, and whether they are degraded."""

_FLAGS = {"user": USER, "assistant": ASSISTANT}


@attrs.frozen(slots=True, eq=False, repr=False)
class Batch(Value):
    """Consecutive rows: as the host gave them, their bytes to store, the digests of these, and which are degraded."""

    rows: Sequence[object] = attrs.field(repr=False)
    data: list[bytes] = attrs.field(repr=False)
    contents: list[bytes] = attrs.field(repr=False)
    degraded: list[bool] = attrs.field(repr=False)
    size: int

    def __len__(self) -> int:
        return len(self.data)

    def after(self, count: int) -> Batch:
        """Without the first ``count`` rows."""
        if not count:
            return self
        rest = self.data[count:]
        return Batch(self.rows[count:], rest, self.contents[count:], self.degraded[count:], sum(map(len, rest)))


def row_batches(rows: Sequence[object], encode: Encode, digest: Digest, expired: Callable[[], bool]) -> Iterator[Batch]:
    """Batches of about :data:`BATCH_BYTES`, until all ``rows`` are done or ``expired()``; the last one may be cut short by it."""
    start = 0
    while start < len(rows) and not expired():
        batch = _one_batch(rows, start, encode, digest, expired)
        start += len(batch)
        yield batch


def _one_batch(rows: Sequence[object], start: int, encode: Encode, digest: Digest, expired: Callable[[], bool]) -> Batch:
    data: list[bytes] = []
    degraded: list[bool] = []
    size = 0
    for row in rows[start : start + _BATCH_ROWS]:
        encoded, is_degraded = encode(row)
        data.append(encoded)
        degraded.append(is_degraded)
        size += len(encoded)
        if size >= BATCH_BYTES or (len(data) % _CLOCK_EVERY == 0 and expired()):
            break
    return Batch(rows[start : start + len(data)], data, list(map(digest, data)), degraded, size)


def encode_row(row: object) -> tuple[bytes, bool]:
    """The bytes of a row of a transcript; a row that the host changes at this moment is read again."""
    try:
        return raw_row(row)
    except RuntimeError:
        return _read_again(row)


def _read_again(row: object) -> tuple[bytes, bool]:
    for _ in range(_RETRIES):
        with suppress(RuntimeError):
            return raw_row(row)
    return canonical_bytes(readable(row)), True


def evidence_rows(digests: Digests, batch: Batch, node: bytes) -> tuple[list[bytes], bytearray]:
    """The identity node of each row, following ``node``, and its flags.  A row that is no evidence hangs under the node before it."""
    nodes: list[bytes] = []
    flags = bytearray()
    for row, data, is_degraded in zip(batch.rows, batch.data, batch.degraded, strict=True):
        evidence = None if is_degraded else evidence_of(row if type(row) is dict else json.loads(data), digests.marker)
        if evidence is not None:
            node = digests.node(node, evidence.identity(digests.identity))
        nodes.append(node)
        flags.append(_FLAGS[evidence.role] if evidence is not None else DEGRADED if is_degraded else 0)
    return nodes, flags


def source_rows(digests: Digests, batch: Batch, node: bytes) -> tuple[list[bytes], bytearray]:
    """A line of a source stands for itself: an erased one stays erased wherever the file has it again."""
    return list(batch.contents), bytearray(len(batch))


def source_lines(source: bytes) -> list[bytes]:
    """The lines of a source with their ``\\n`` (a lone ``\\r`` ends no line of JSONL): joined, they are the source."""
    *lines, rest = source.split(b"\n")
    return [line + b"\n" for line in lines] + ([rest] if rest else [])
