"""What is printed: JSON for programs, tables for people, plain text where stdout is no terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import attrs

from memoryd.errors import CheckpointBlocked, InvalidInput, MemorydError

__all__ = [
    "busy", "error_object", "missing", "one_line", "plain", "progress", "table", "to_json", "when", "write_bytes",
    "write_json", "write_line",
]


def to_json(value: Any) -> Any:
    """A result as JSON values: attrs classes by field name, times as ISO 8601 with zone, tuples as lists."""
    if attrs.has(type(value)):
        return {field.name: to_json(getattr(value, field.name)) for field in attrs.fields(type(value))}
    match value:
        case datetime():
            return value.isoformat()
        case Mapping():
            return {str(key): to_json(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [to_json(item) for item in value]
        case bytes():
            return value.hex()
        case _:
            return value


def write_json(value: Any) -> None:
    """One line of JSON, flushed.  A lone surrogate, which UTF-8 cannot hold, becomes its JSON escape."""
    write_line(json.dumps(value, ensure_ascii=False))


def write_line(text: str) -> None:
    """One line, flushed, whatever characters it has."""
    write_bytes(text.encode("utf-8", "backslashreplace") + b"\n")


def write_bytes(data: bytes) -> None:
    """Bytes as they are, flushed."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def error_object(error: BaseException) -> dict[str, Any]:
    """``{"error": {...}}``: class, message, whether trying again helps, and what the class knows beside it."""
    found: dict[str, Any] = {"type": type(error).__name__, "message": one_line(str(error))}
    found["retryable"] = isinstance(error, MemorydError) and error.retryable
    match error:
        case CheckpointBlocked():
            found |= {"code": error.code, "cause": error.cause, "remedy": error.remedy}
        case InvalidInput():
            found["field"] = error.field
        case _:
            pass
    return {"error": found}


def missing(as_json: bool, message: str) -> int:
    """Say that what was asked for is not there; the exit code."""
    print(one_line(f"memoryd: {message}"), file=sys.stderr)
    if as_json:
        write_json({"error": {"type": "NotFound", "message": one_line(message), "retryable": False}})
    return 1


def one_line(text: str) -> str:
    """``text`` with line breaks as spaces and without control characters."""
    return plain(" ".join(text.split()))


def plain(text: str) -> str:
    """``text`` without control characters (recalled text must not drive a terminal); line breaks and tabs stay."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """Shows that work goes on, where standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # only where there is a terminal

    with Console(stderr=True).status(doing):
        yield


@contextmanager
def progress(doing: str, *, shown: bool = True) -> Iterator[Callable[[int, int], None]]:
    """``told(done, total)`` draws a bar, where standard error is a terminal."""
    if not shown or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console  # only where there is a terminal
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def when(value: datetime | None) -> str:
    """A time for people: UTC, to the second."""
    return "" if value is None else value.strftime("%Y-%m-%d %H:%M:%SZ")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Rows under headers: a drawn table on a terminal, else one line a row with tabs between cells and no headers."""
    cells = [[plain("" if cell is None else str(cell)) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            write_line("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row))
    elif cells:
        _drawn(headers, cells)


def _drawn(headers: Sequence[str], cells: list[list[str]]) -> None:
    from rich.box import SIMPLE_HEAD  # only where there is a terminal
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        drawn.add_column(header, overflow="fold")
    for row in cells:
        drawn.add_row(*(Text(cell) for cell in row))
    Console().print(drawn)
