"""Reading a transcript file: a JSON array, an object with ``messages``, or JSONL; also one that was cut, or that has odd lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from memoryd.errors import InvalidInput

__all__ = ["read_source", "read_transcript"]

_FIELD = "transcript"
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_SPACE = " \t\r\n"
_BETWEEN = _SPACE + ","
_PART = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)  # a whole text, or what structures JSON


def read_transcript(source: bytes | str | Path) -> list[object]:
    """The rows of a transcript, given as its bytes or as the path of its file.

    What is no JSON (a bad line, a half last one) becomes a row of its text; the archive counts it as degraded.  Raises
    :class:`~memoryd.errors.InvalidInput` for a file that cannot be read, that is empty, or that holds no readable row.
    """
    text = _decoded(source if isinstance(source, bytes) else read_source(source))
    if not text.strip(_SPACE):
        raise InvalidInput(_FIELD, "is empty; a transcript without rows is written []")
    rows = _rows(text)
    if rows and not any(isinstance(row, Mapping) for row in rows):
        raise InvalidInput(_FIELD, "holds no readable row; expected a JSON array or one JSON object a line")
    return rows


def read_source(path: object) -> bytes:
    """The bytes of the file at ``path`` (text or Path); never another file's.  Raises :class:`~memoryd.errors.InvalidInput`."""
    if not isinstance(path, (str, Path)) or not str(path):
        raise InvalidInput(_FIELD, "no path was given")
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(_FIELD, f"{path} cannot be read: {reason}") from error


def _decoded(data: bytes) -> str:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "backslashreplace")
    return data.decode("utf-8", "backslashreplace")


def _rows(text: str) -> list[object]:
    try:
        whole = _parsed(text)
    except ValueError:
        return _array_rows(text) if text.lstrip(_SPACE).startswith("[") else _line_rows(text)
    if isinstance(whole, list):
        return whole
    messages = whole.get("messages") if isinstance(whole, dict) and "role" not in whole else None
    return messages if isinstance(messages, list) else [whole]


def _line_rows(text: str) -> list[object]:
    return [_row(line) for line in text.split("\n") if line.strip(_SPACE)]


def _row(line: str) -> object:
    try:
        return _parsed(line)
    except ValueError:
        return line.strip("\r")


def _array_rows(text: str) -> list[object]:
    """The rows of an array that is cut or damaged: an odd one as its text, and what stands after a cut as text too."""
    rows = list(_elements(text))
    return rows if any(isinstance(row, Mapping) for row in rows) else _line_rows(text)


def _elements(text: str) -> Iterator[object]:
    at = _skip(text, text.index("[") + 1)
    while at < len(text) and text[at] != "]":
        try:
            row, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = _end(text, at)
            if end is None:
                break
            row, at = text[at:end].rstrip(_SPACE), end
        yield row
        at = _skip(text, at)
    rest = text[at:].removeprefix("]").strip(_SPACE)
    if rest:
        yield rest


def _end(text: str, at: int) -> int | None:
    """Where the element that begins at ``at`` ends, by its brackets alone; None where they do not close."""
    depth = 0
    for part in _PART.finditer(text, at):
        mark = part.group()
        if depth == 0 and mark in (",", "]"):
            return part.start()
        if mark == '"' or (mark == "}" and depth == 0):
            return None
        depth += (mark in "[{") - (mark in "]}")
    return None


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BETWEEN:
        at += 1
    return at


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _parsed(text: str) -> Any:
    """Raises ``ValueError`` for what is not JSON."""
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
