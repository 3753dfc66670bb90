"""A host's transcript: its file, read whole for the gate or onwards from a place, and its rows as the archive keeps them.

The path in the payload is the only path.  Files are only appended to by their hosts, may grow while they are read, and may hold anything.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import attrs
import msgspec

from memoryd.core import Value, readable
from memoryd.errors import InvalidInput
from memoryd.hosts._dialect import Dialect, Row

__all__ = ["Line", "Stamp", "archive_rows", "parsed", "read_lines", "read_stable", "stamp_of", "without_pauses"]

MAX_LINE = 64 << 20
_SETTLE_S = 0.02
_SETTLES = 10
_RACY_NS = 10_000_000  # a change within this time after another might not show in the file's times
_FIELD = "transcript"


@attrs.frozen(slots=True, eq=False, repr=False)
class Stamp(Value):
    """What tells one state of a file from another.  ``sure`` where any later change gives another stamp."""

    inode: int
    size: int
    changed: int
    sure: bool


@attrs.frozen(slots=True, eq=False, repr=False)
class Line(Value):
    """One record that is complete; ``start`` and ``end`` are places in the file.  ``record`` is None for what is no JSON object."""

    start: int
    end: int
    record: Mapping[str, Any] | None = attrs.field(repr=False)


def stamp_of(found: os.stat_result) -> Stamp:
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    return Stamp(found.st_ino, found.st_size, changed, time.time_ns() - changed > _RACY_NS)


def read_stable(path: str) -> tuple[bytes, Stamp]:
    """All bytes of the file, once it has stopped growing (it is waited for 0.2 s at most).

    Raises :class:`~memoryd.errors.InvalidInput` where there is no such file, it is no regular file, it cannot be read, or it is empty.
    """
    with _opened(path) as stream:
        data, before = stream.read(), os.fstat(stream.fileno())
        for _ in range(_SETTLES):
            if before.st_size == len(data):
                break
            time.sleep(_SETTLE_S)
            data, before = data + stream.read(), os.fstat(stream.fileno())
    if not data.strip():
        raise InvalidInput(_FIELD, f"{path} is empty")
    return data, stamp_of(before)


def read_lines(path: str, start: int = 0) -> Iterator[Line]:
    """The records from ``start`` on; a last one without a line end counts once it is whole JSON.  Raises as :func:`read_stable`."""
    with _opened(path) as stream:
        stream.seek(start)
        while raw := stream.readline(MAX_LINE + 1):
            begun, start = start, start + len(raw)
            if len(raw) > MAX_LINE and not raw.endswith(b"\n"):
                start += _skip_rest(stream)
                yield Line(begun, start, None)
                continue
            record = parsed(raw)
            if record is None and not raw.endswith(b"\n"):
                return
            if raw.strip():
                yield Line(begun, start, record)


def _skip_rest(stream: IO[bytes]) -> int:
    skipped = 0
    while raw := stream.readline(MAX_LINE):
        skipped += len(raw)
        if raw.endswith(b"\n"):
            break
    return skipped


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would wait for its writer
    except (OSError, ValueError) as error:
        raise InvalidInput(_FIELD, f"{path} cannot be read: {_reason(error)}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InvalidInput(_FIELD, f"{path} is no regular file")
    with open(descriptor, "rb") as stream:
        try:
            yield stream
        except OSError as error:
            raise InvalidInput(_FIELD, f"{path} cannot be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)


def parsed(raw: bytes) -> dict[str, Any] | None:
    """The JSON object of a line, or None."""
    try:
        record = msgspec.json.decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        record = _parsed_slowly(raw)
    return record if isinstance(record, dict) else None


def _parsed_slowly(raw: bytes) -> Any:
    """What the quick reader refuses though others write it: lone surrogates, a mark at the beginning of a file."""
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


# -- for the archive ---------------------------------------------------------------------------------------------------------


def archive_rows(dialect: Dialect, source: bytes) -> list[object]:
    """The messages of a transcript as the archive keeps them beside its bytes: the records of one message joined, what is no JSON as
    its text, tool output and noise only in the bytes.

    Raises :class:`~memoryd.errors.InvalidInput` where no line is a JSON object.
    """
    rows: list[object] = []
    group, found = "", False
    for raw in source.split(b"\n"):
        if not raw.strip():
            continue
        record = parsed(raw)
        if record is None:
            rows.append(readable(raw))
            continue
        found = True
        row = dialect.row(record)
        if row is None or row.kind == "tool":
            continue
        if row.group and row.group == group:
            _join(rows, row)
        else:
            rows.append(_message(row))
        group = row.group
    if not found:
        raise InvalidInput(_FIELD, "holds no readable row; expected one JSON object a line")
    return rows


def without_pauses(dialect: Dialect, source: bytes, paused: Callable[[int], bool]) -> bytes:
    """``source`` without what was written while recording was paused; a line that has no time goes with the one before it."""
    kept: list[bytes] = []
    out = False
    for line in source.splitlines(keepends=True):
        record = parsed(line)
        at = dialect.time(record) if record is not None else None
        out = out if at is None else paused(at)
        if not out:
            kept.append(line)
    return b"".join(kept)


def _message(row: Row) -> dict[str, Any]:
    text = row.content if row.kind != "sidechain" and row.role == "user" else row.text
    message: dict[str, Any] = {"role": row.role, "content": text, "id": row.id}
    match row.kind:
        case "summary":
            message["is_summary"] = True
        case "host":
            message["isMeta"] = True
        case "sidechain":
            message |= {"role": "sidechain", "speaker": row.role, "agent": row.agent}
        case "boundary":
            message["role"] = "boundary"
        case _:
            pass
    extra = {"at": row.at, "tools": list(row.tools), "paths": list(row.paths)}
    return message | {name: value for name, value in extra.items() if value}


def _join(rows: list[object], row: Row) -> None:
    message = rows[-1]
    assert isinstance(message, dict)
    message["content"] = "\n".join(filter(None, (message["content"], row.text)))
    for name, more in (("tools", row.tools), ("paths", row.paths)):
        if more:
            message[name] = [*message.get(name, ()), *more]
