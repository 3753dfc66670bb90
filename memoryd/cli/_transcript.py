"""A transcript from a file: every row that can be read, whatever state the file is in."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["parse_transcript", "read_transcript"]


def read_transcript(file: Path) -> tuple[list[Any], bytes]:
    """The rows of ``file`` (``-`` is standard input) and its bytes.  Raises OSError where it cannot be read."""
    data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    return parse_transcript(data), data


def parse_transcript(data: bytes) -> list[Any]:
    """The rows of a JSON array, of an object with ``messages``, or of JSONL.

    A row that is not JSON, such as a half last line, is kept as its text: it is odd, but it is evidence.
    """
    text = data.decode("utf-8", "surrogateescape").removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    whole = _value(text)
    if isinstance(whole, list):
        return whole
    if isinstance(whole, dict) and isinstance(whole.get("messages"), list) and "role" not in whole:
        return list(whole["messages"])
    if text.lstrip().startswith("["):
        return _broken_array(text)
    return [_row(line) for line in text.split("\n") if line.strip()]


def _row(line: str) -> Any:
    value = _value(line)
    return line.strip() if value is None else value


def _value(text: str) -> Any:
    """The JSON value that ``text`` is, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _broken_array(text: str) -> list[Any]:
    """The whole rows at the beginning of an array that was cut off or damaged, and the rest as text."""
    decoder = json.JSONDecoder()
    position = text.index("[") + 1
    rows: list[Any] = []
    while True:
        position = _skip(text, position)
        try:
            row, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        rows.append(row)
    rest = text[position:].strip()
    return [*rows, rest] if rest.strip("] \n") else rows


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n,":
        position += 1
    return position
