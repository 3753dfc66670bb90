"""Text as the user and the agent said it: contents of any shape flattened, and what the host injected taken out.  Pure.

The host wraps recalled text in ``<memory-context>`` with a note of its own, and on some paths gives the wrapped text back: in the
user's text, in a query, in the rows of a transcript.  A user who writes about that tag keeps his words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memoryd.core import row_text

__all__ = ["clean_row", "spoken"]

_OPEN = re.compile(r"<\s*memory-context\s*>", re.IGNORECASE)
_EDGE = re.compile(r"<\s*(/?)\s*memory-context\s*>", re.IGNORECASE)
_SIGNS = re.compile(r"\s*\[System note:|<memoryd-recall-[0-9a-f]")
_TAIL = re.compile(r"(</memoryd-recall-[0-9a-f]{16}>)\s*</\s*memory-context\s*>", re.IGNORECASE)
_CUT = re.compile(r"(\A|\n)\s*<memory-con[a-z]*(>\s*(\[[^\]]*)?)?\Z", re.IGNORECASE)
_COPIES = ("content", "api_content")


def spoken(content: object) -> str:
    """What was said in ``content`` (text, or a list of parts), without what the host injected."""
    return _without_blocks(content if isinstance(content, str) else row_text(content))


def clean_row(row: Any) -> Any:
    """``row``, or a copy of it without what the host injected into its content, where it did.  The host's row is never changed."""
    if not isinstance(row, Mapping):
        return row
    changed = {name: _clean(row[name]) for name in _COPIES if name in row}
    changed = {name: value for name, value in changed.items() if value != row[name]}
    return {**row, **changed} if changed else row


def _clean(content: object) -> object:
    if isinstance(content, str):
        return _without_blocks(content)
    if isinstance(content, Sequence):
        return [_clean_part(part) for part in content]
    return content


def _clean_part(part: object) -> object:
    if isinstance(part, str):
        return _without_blocks(part)
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        text = _without_blocks(part["text"])
        return part if text == part["text"] else {**part, "text": text}
    return part


def _without_blocks(text: str) -> str:
    if "memory-con" not in text.lower():
        return text
    done = 0
    kept: list[str] = []
    for start, end in _blocks(text):
        kept.append(text[done:start])
        done = end
    kept.append(_CUT.sub("", text[done:]))
    kept = [_TAIL.sub(r"\1", part) for part in kept]  # the beginning of a block was cut off: the store knows its inner mark
    if "".join(kept) == text:
        return text
    return "\n\n".join(part.strip("\r\n") for part in kept if part.strip())


def _blocks(text: str) -> list[tuple[int, int]]:
    """Where the host's blocks stand: each from its outermost opening tag to the tag that closes it, or to the end where that was cut."""
    found: list[tuple[int, int]] = []
    place = 0
    while (opening := _OPEN.search(text, place)) is not None:
        end = _end(text, opening.end())
        inside = text[opening.end() : len(text) if end is None else end]
        place = opening.end()
        if _SIGNS.match(inside) or (end is not None and _SIGNS.search(inside)):
            place = len(text) if end is None else end
            found.append((opening.start(), place))
    return found


def _end(text: str, place: int) -> int | None:
    """The end of the block that was opened before ``place``; those nested in it are part of it."""
    depth = 1
    for edge in _EDGE.finditer(text, place):
        depth += -1 if edge[1] else 1
        if depth == 0:
            return edge.end()
    return None
