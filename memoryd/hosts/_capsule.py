"""The re-briefing after a compaction: what must not be lost between two contexts, taken from the checkpoint word for word.  No model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from memoryd.core import Value, evidence_of, from_micros, row_text
from memoryd.recall import cut_end, escape, fence

__all__ = ["capsule"]

_RULE = re.compile(
    r"\b(?:do not|don[’']?t|never|always|must(?:n[’']?t)?|without|only|avoid|no longer|instead of|make sure|keep|prefer|should(?:n[’']?t)?"
    r"|may not|under no circumstances|leave)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_OPEN_ITEM = re.compile(r"^\s*[-*]\s*\[ \]\s+(.+)$", re.MULTILINE)
_DONE_ITEM = re.compile(r"^\s*[-*]\s*\[[xX]\]\s+(.+)$", re.MULTILINE)
_LONGEST_RULE = 400
_LONGEST_REQUEST = 1200
_RECENT_REQUESTS = 4
_RECENT_ROWS = 40
_MOST_PATHS = 20


@attrs.frozen(slots=True, eq=False, repr=False)
class _Request(Value):
    """What the user asked, where it stands in the checkpoint (from 1), and whether it was answered."""

    number: int
    text: str
    at: int
    answered: bool


def capsule(rows: Sequence[Any], checkpoint: str, *, marker: str, budget: int, summary: str = "") -> str:
    """The fenced block for the ``rows`` of a checkpoint, of at most ``budget`` characters; empty where nothing was said.

    In order of weight: the last request and whether it was answered, earlier ones that were not, open items, the user's constraints
    word for word, paths of the last turns, how to read more.  What ``summary`` holds already is left out.
    """
    requests = list(_requests(rows))
    if not requests:
        return ""
    source, held = f"[checkpoint {checkpoint[:16]}]", _squeezed(summary)
    room, lines = budget - len(fence("", marker)), []
    for line in _lines(rows, requests, checkpoint, marker):
        whole = f"{line.head}{line.text} {source}"
        if len(whole) + 1 > room or (held and _squeezed(line.text) in held):
            continue
        lines.append(whole)
        room -= len(whole) + 1
    return fence("\n".join(lines), marker) if lines else ""


@attrs.frozen(slots=True, eq=False, repr=False)
class _Line(Value):
    head: str
    text: str


def _lines(rows: Sequence[Any], requests: Sequence[_Request], checkpoint: str, marker: str) -> Iterator[_Line]:
    last, earlier = requests[-1], requests[-_RECENT_REQUESTS:-1]
    more = f"`memoryd checkpoint read {checkpoint[:16]} --range A:B` prints messages A to B of 1 to {len(rows)} word for word"

    def line(at: int, what: str, text: str, longest: int = _LONGEST_RULE) -> _Line:
        said = escape(text, marker)
        cut = said if len(said) <= longest else cut_end(said, longest - 1) + "…"
        return _Line(f"- {from_micros(at):%Y-%m-%d %H:%M} {what}: ", cut)

    state = "answered" if last.answered else "not answered yet"
    yield line(last.at, f"last request ({state}, message {last.number})", last.text, _LONGEST_REQUEST)
    yield line(last.at, "more", more)
    for request in reversed(earlier):
        if not request.answered:
            yield line(request.at, f"open request (message {request.number})", request.text)
    for item in _open_items(rows):
        yield line(last.at, "open item", item)
    for request, rule in _constraints(requests[:-1]):
        yield line(request.at, f"the user said (message {request.number})", rule)
    paths = _paths(rows)
    if paths:
        yield line(last.at, "files of the last turns", ", ".join(paths), _LONGEST_REQUEST)


def _requests(rows: Sequence[Any]) -> Iterator[_Request]:
    open_request: tuple[int, str, int] | None = None
    answered = False
    for number, row in enumerate(rows, 1):
        said = evidence_of(row)
        if said is not None and said.role == "user":
            if open_request is not None:
                yield _Request(*open_request, answered)
            open_request, answered = (number, said.text, _time(row)), False
        elif isinstance(row, dict) and row.get("role") == "assistant":
            # an answer is what was said last, with nothing more to do after it
            answered = said is not None and not row.get("tools")
    if open_request is not None:
        yield _Request(*open_request, answered)


def _time(row: Any) -> int:
    at = row.get("at")
    return at if isinstance(at, int) else 0


def _open_items(rows: Sequence[Any]) -> list[str]:
    """Unticked boxes that nothing has ticked since."""
    items: dict[str, str] = {}
    for row in rows:
        text = row_text(row.get("content")) if isinstance(row, dict) and row.get("role") == "assistant" else ""
        if "[" not in text:
            continue
        for item in _OPEN_ITEM.findall(text):
            items[_squeezed(item)] = item
        for item in _DONE_ITEM.findall(text):
            items.pop(_squeezed(item), None)
    return list(items.values())


def _constraints(requests: Iterable[_Request]) -> Iterator[tuple[_Request, str]]:
    """Sentences of the user that bind, newest first, each once."""
    seen: set[str] = set()
    for request in reversed(list(requests)):
        for sentence in _SENTENCE.split(request.text):
            key = _squeezed(sentence).lower()
            if _RULE.search(sentence) and len(sentence) <= _LONGEST_RULE and key not in seen:
                seen.add(key)
                yield request, sentence.strip()


def _paths(rows: Sequence[Any]) -> list[str]:
    """The latest first."""
    found: dict[str, None] = {}
    for row in reversed(rows[-_RECENT_ROWS:]):
        if isinstance(row, dict):
            found |= dict.fromkeys(path for path in reversed(row.get("paths") or ()) if isinstance(path, str))
    return list(found)[:_MOST_PATHS]


def _squeezed(text: str) -> str:
    return "".join(text.split())
