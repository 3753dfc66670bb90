"""What a host injects: one line a hit, dated and with its source, inside a fence and a budget of characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memoryd.core import Hit
from memoryd.recall._cut import cut_end
from memoryd.recall._fence import escape, fence
from memoryd.recall._fold import newest_first

__all__ = ["BUDGET", "render"]

BUDGET = 4000
_SHARE = 4  # one hit takes at most a fourth of the budget, so that others are heard
_MORE = "\u2026"
_MIN_TEXT = 24  # a line with less of its text says nothing


def render(hits: Sequence[Hit], *, marker: str, budget: int = BUDGET) -> str:
    """The fenced block for ``hits``, best first, of at most ``budget`` characters; empty where there is nothing to say.

    Of one key the newest value comes first.  Texts are cut between characters as seen, never inside one.
    """
    room = budget - len(fence("", marker))
    lines = "\n".join(_fitting(newest_first(hits), marker, room, max(room // _SHARE, 200)))
    return fence(lines, marker) if lines else ""


def _fitting(hits: Sequence[Hit], marker: str, room: int, share: int) -> Iterator[str]:
    for hit in hits:
        line = _line(hit, marker, min(room, share))
        if line is None:
            return
        yield line
        room -= len(line) + 1


def _line(hit: Hit, marker: str, limit: int) -> str | None:
    """The line of one hit within ``limit`` characters, or None where not enough of its text would fit."""
    head, tail = _head(hit, marker), _tail(hit, marker)
    said = escape(hit.text, marker)
    room = limit - len(head) - len(tail)
    if len(said) <= room:
        return f"{head}{said}{tail}"
    if room < _MIN_TEXT:
        return None
    return f"{head}{cut_end(said, room - 1)}{_MORE}{tail}"


def _head(hit: Hit, marker: str) -> str:
    until = f" until {hit.valid_until:%Y-%m-%d}" if hit.valid_until is not None else ""
    state = f"{until}, superseded" if hit.superseded else until
    who = f"memory {cut_end(escape(hit.key or '', marker), 80)}" if hit.kind == "memory" else hit.role or "said"
    return f"- {hit.at:%Y-%m-%d %H:%M}{state} {who}: "


def _tail(hit: Hit, marker: str) -> str:
    times = f" ({hit.copies} times)" if hit.copies > 1 else ""
    return f"{times} [{cut_end(escape(hit.source, marker), 80)} {cut_end(escape(hit.id, marker), 64)}]"
