"""Spool files: what was still held at close, until the next open takes it into the log.

A file is a sequence of records: length (4 bytes, big endian), CRC-32 of the body (4 bytes), body (a msgpack row).  A damaged record
ends the reading of its file; the good part is ingested and the file is kept aside.
"""

from __future__ import annotations

import os
import secrets
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
import msgspec

from memoryd.core import Value
from memoryd.journal._held import Row
from memoryd.store import fsync_directory, private_directory, write_private

__all__ = ["SpoolFile", "list_spool", "quarantine", "read_spool", "remove_spool", "write_spool"]

_SUFFIX = ".held"
_encode = msgspec.msgpack.encode
_decoder = msgspec.msgpack.Decoder(tuple[bytes, bytes | None, int, int, bytes])


@attrs.frozen(slots=True, eq=False, repr=False)
class SpoolFile(Value):
    """The readable rows of a file; ``damaged`` where something after them could not be read."""

    path: Path
    rows: tuple[Row, ...]
    damaged: bool


def write_spool(directory: Path, rows: Iterable[Row]) -> Path:
    """Write ``rows`` with fsync under a new name; raises the store's errors."""
    private_directory(directory)
    path = directory / f"{os.getpid()}-{secrets.token_hex(8)}{_SUFFIX}"
    write_private(path, b"".join(map(_record, rows)))
    return path


def _record(row: Row) -> bytes:
    body = _encode(row)
    return len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


def list_spool(directory: Path) -> list[Path]:
    """The spool files, oldest first."""
    try:
        found = [entry for entry in os.scandir(directory) if entry.name.endswith(_SUFFIX)]
        return [Path(entry.path) for entry in sorted(found, key=lambda entry: entry.stat().st_mtime_ns)]
    except FileNotFoundError:
        return []


def read_spool(path: Path) -> SpoolFile:
    """The rows of ``path``; raises OSError where it cannot be read at all."""
    data = path.read_bytes()
    rows: list[Row] = []
    consumed = 0
    for body, end in _bodies(data):
        try:
            rows.append(_decoder.decode(body))
        except msgspec.DecodeError:
            break
        consumed = end
    return SpoolFile(path, tuple(rows), damaged=consumed != len(data))


def _bodies(data: bytes) -> Iterator[tuple[bytes, int]]:
    position = 0
    while position + 8 <= len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        check = int.from_bytes(data[position + 4 : position + 8], "big")
        end = position + 8 + length
        body = data[position + 8 : end]
        if end > len(data) or zlib.crc32(body) != check:
            return
        yield body, end
        position = end


def quarantine(path: Path) -> Path:
    """Keep a damaged file aside, under its own name; nothing is deleted."""
    aside = path.parent / "quarantine"
    private_directory(aside)
    target = aside / path.name
    os.replace(path, target)
    fsync_directory(aside)
    return target


def remove_spool(path: Path) -> None:
    path.unlink(missing_ok=True)
    fsync_directory(path.parent)
