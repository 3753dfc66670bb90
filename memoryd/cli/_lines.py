"""JSON documents from a stream, as soon as each is complete."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import attrs
import trio

__all__ = ["Document", "read_documents"]

MAX_LINE = 256 << 20
_CHUNK = 1 << 18


@attrs.frozen(slots=True)
class Document:
    """One JSON value and the number of the line where it began, or the ``problem`` with that line."""

    line: int
    value: Any = None
    problem: str = ""


class Lines:
    """Lines of a file descriptor, read in a thread so that the loop goes on.  Not through ``sys.stdin``: a thread that still waits
    there when the interpreter ends would crash it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._searched = 0
        self._ended = False
        self.number = 0

    async def next(self) -> bytes | None:
        """The next line without its end, or None; one beyond :data:`MAX_LINE` is cut there and its rest skipped."""
        while (end := self._buffer.find(b"\n", self._searched)) < 0 and not self._ended:
            self._searched = len(self._buffer)
            chunk = await trio.to_thread.run_sync(os.read, self._descriptor, _CHUNK, abandon_on_cancel=True)
            self._ended = not chunk
            self._buffer += chunk[: max(0, MAX_LINE + 1 - len(self._buffer))] if b"\n" not in chunk else chunk
        self._searched = 0
        if end < 0 and not self._buffer:
            return None
        line = bytes(self._buffer[:end] if end >= 0 else self._buffer)
        del self._buffer[: end + 1 if end >= 0 else len(self._buffer)]
        self.number += 1
        return line


async def read_documents(descriptor: int) -> AsyncIterator[Document]:
    """Every JSON value of a stream of lines, or the one value that the stream is.

    The stream is one document where its first line is only the beginning of a value and the second is no document by itself.
    """
    lines = Lines(descriptor)
    first = await _content(lines)
    if first is None:
        return
    document = _parse(*first)
    if not (document.problem and first[1].lstrip()[:1] in (b"{", b"[")):
        yield document
    else:
        for document in await _whole(first, lines):
            yield document
    while (content := await _content(lines)) is not None:
        yield _parse(*content)


async def _whole(first: tuple[int, bytes], lines: Lines) -> list[Document]:
    """The rest of the stream as one value; where it is none, the bad first line and what stands after it."""
    second = await _content(lines)
    if second is None:
        return [_parse(*first)]
    alone = _parse(*second)
    if isinstance(alone.value, dict) and {"user", "assistant"} & alone.value.keys():
        return [_parse(*first), alone]
    rest = [first, second]
    while (content := await _content(lines)) is not None:
        rest.append(content)
    whole = _parse(first[0], b"\n".join(line for _, line in rest))
    return [whole] if not whole.problem else [_parse(*content) for content in rest]


async def _content(lines: Lines) -> tuple[int, bytes] | None:
    """The next line that is not blank, with its number."""
    while (line := await lines.next()) is not None:
        if lines.number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            return lines.number, line
    return None


def _parse(number: int, line: bytes) -> Document:
    if len(line) > MAX_LINE:
        return Document(number, problem=f"is longer than {MAX_LINE >> 20} MiB")
    try:
        return Document(number, json.loads(line.decode("utf-8")))
    except UnicodeDecodeError as error:
        return Document(number, problem=f"is not UTF-8 text (byte {error.start})")
    except json.JSONDecodeError as error:
        return Document(number, problem=f"is not JSON: {error.msg} (column {error.colno})")
    except (ValueError, RecursionError):
        return Document(number, problem="is not JSON: nested too deeply, or a number with too many digits")
