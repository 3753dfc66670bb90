"""Looking at the archive: list, show, restore, and how many bytes it takes."""

from __future__ import annotations

from pathlib import Path
from string import hexdigits

from memoryd.checkpoint._files import Files, name_bytes, name_text, walk
from memoryd.checkpoint._packs import PackReader
from memoryd.checkpoint._pages import unpack_places
from memoryd.core import DIGEST_SIZE, CheckpointInfo, Receipt, Restored, from_micros
from memoryd.errors import CheckpointNotFound
from memoryd.store import Row

__all__ = ["bytes_on_disk", "find_checkpoint", "list_checkpoints", "read_chain", "restore"]

_MIN_PREFIX = 8


def list_checkpoints(files: Files, user: str | None, session: str | None, limit: int) -> tuple[CheckpointInfo, ...]:
    """The checkpoints of a user, of one session, or all; the most recent attempt first."""
    names = tuple(name_bytes(name) if name is not None else None for name in (user, session))
    return tuple(_info(files, row) for row in files.reader.all(files.sql["list_checkpoints"], (*names, limit)))


def find_checkpoint(files: Files, id: str) -> CheckpointInfo:
    """The checkpoint with that id, or whose id alone begins so (at least 8 characters)."""
    return _info(files, _find(files, id))


def restore(files: Files, id: str, attempt: int | None, full: bool) -> Restored:
    """The raw rows of the newest attempt, or of the given one; ``full``: with the source's own bytes, where there was a source."""
    with files.reader.transaction("DEFERRED"):
        number, identity, *_ = _find(files, id)
        found = [row for row in files.reader.all(files.sql["attempts"], (number,)) if attempt is None or row[0] == attempt]
        if not found:
            raise CheckpointNotFound(f"checkpoint {id} has no attempt {attempt}; `memoryd checkpoint show {id}` lists them")
        n, page, at, _, source_page, source_at, *_ = found[-1]
        rows = read_chain(files, page, at)
        lines = read_chain(files, source_page, source_at) if full and source_page else None
    source = b"".join(line for line in lines if line is not None) if lines is not None else None
    return Restored(identity.hex(), n, tuple(rows), sum(row is None for row in rows), source)


def read_chain(files: Files, page: int, at: int) -> list[bytes | None]:
    """The bytes of every row from the chain's root to a position; None for an erased one."""
    packs = PackReader(files.reader, files.sql)
    rows: list[bytes | None] = []
    for stored, take in walk(files.reader, files.sql, page, at):
        rows += packs.rows(list(unpack_places(stored.places))[:take])
    return rows


def bytes_on_disk(path: Path) -> int:
    """The archive's file and its write-ahead log."""
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += path.with_name(path.name + suffix).stat().st_size
        except FileNotFoundError:
            continue
    return total


def _find(files: Files, id: str) -> Row:
    prefix = id.strip().lower()
    if len(prefix) < _MIN_PREFIX or len(prefix) > 2 * DIGEST_SIZE or not set(prefix) <= set(hexdigits):
        raise CheckpointNotFound(f"{id!r} is no checkpoint id: give its hex digits, at least {_MIN_PREFIX}")
    low, high = (bytes.fromhex(prefix.ljust(2 * DIGEST_SIZE, filler)) for filler in "0f")
    found = files.reader.all(files.sql["checkpoints_between"], (low, high))
    if not found:
        raise CheckpointNotFound(f"this profile has no checkpoint {id}; `memoryd checkpoint list` shows those it has")
    if len(found) > 1:
        raise CheckpointNotFound(f"{len(found)} checkpoints begin with {id}; give more of the id")
    return found[0]


def _info(files: Files, row: Row) -> CheckpointInfo:
    number, identity, user, session, count = row
    attempts = [_receipt(files, identity, name_text(session), found) for found in files.reader.all(files.sql["attempts"], (number,))]
    return CheckpointInfo(identity.hex(), name_text(user), name_text(session), count, tuple(attempts))


def _receipt(files: Files, identity: bytes, session: str, row: Row) -> Receipt:
    n, _, _, _, _, _, rows, evidence, new_rows, degraded, erased, host, trigger, time = row
    return Receipt(
        id=identity.hex(), attempt=n, verdict="archived", session=session, rows=rows, evidence=evidence, new_rows=new_rows,
        degraded=degraded, erased=erased, host=name_text(host), trigger=name_text(trigger), at=from_micros(time), archive=str(files.path),
    )  # fmt: skip
