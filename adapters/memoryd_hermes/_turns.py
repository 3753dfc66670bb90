"""Turns in a host's message list, and which of them are missing from what is recorded.  Pure.

The list and the record may differ though nothing is missing: the host masks a secret that it learnt later, merges rows, expands a
command.  So the two are laid side by side.  A turn that the record does not know is missing only where nothing of the record stands
unclaimed at its place; where something does it is that, told otherwise, and where the numbers do not fit it is in doubt: not added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import attrs

from memoryd.core import evidence_of
from memoryd_hermes._echo import clean_row

__all__ = ["Entry", "Gaps", "SpokenTurn", "missing_turns", "row_uids", "spoken_turns"]


@attrs.frozen(slots=True)
class SpokenTurn:
    """One user text and the answer.  ``uids`` are the host's ids of the user's row and of rows merged into it; ``at`` is the row's
    time (seconds since the epoch), where it has one; ``open``: the answer may still be coming."""

    user: str = attrs.field(repr=False)
    assistant: str = attrs.field(default="", repr=False)
    uids: tuple[str, ...] = ()
    at: float | None = None
    open: bool = False


@attrs.frozen(slots=True)
class Entry:
    """What the record keeps of a turn: the digest of the user's text, and the host's ids of its row."""

    text: str
    uids: tuple[str, ...] = ()


@attrs.frozen(slots=True)
class Gaps:
    """``missing`` are the turns to add, each with its place in the list and its place in the record; ``told_otherwise`` and ``doubtful``
    count those that are not added."""

    missing: tuple[tuple[int, int], ...] = ()
    told_otherwise: int = 0
    doubtful: int = 0


def spoken_turns(messages: Sequence[Any]) -> list[SpokenTurn]:
    """The turns of ``messages``, oldest first.  Summaries, notices of the host, tool and system rows are none."""
    turns: list[SpokenTurn] = []
    last: Mapping[str, Any] = {}
    for row in map(clean_row, messages):
        if not isinstance(row, Mapping):
            continue
        last = row
        said = evidence_of(row)
        if said is None:
            continue
        if said.role == "user":
            turns.append(SpokenTurn(said.text, uids=_uids(row), at=_time(row)))
        elif turns:
            turns[-1] = attrs.evolve(turns[-1], assistant=said.text)
    if turns and (last.get("role") != "assistant" or last.get("tool_calls") or not turns[-1].assistant):
        turns[-1] = attrs.evolve(turns[-1], open=True)
    return turns


def row_uids(messages: Sequence[Any] | None) -> tuple[str, ...]:
    """The host's ids of the newest user row."""
    rows = (row for row in reversed(messages or ()) if isinstance(row, Mapping) and row.get("role") == "user")
    newest = next(rows, None)
    return () if newest is None else _uids(newest)


def _uids(row: Mapping[str, Any]) -> tuple[str, ...]:
    merged = row.get("_absorbed_message_uids")
    found = [row.get("message_uid"), *(merged if isinstance(merged, list) else ())]
    return tuple(dict.fromkeys(uid for uid in found if isinstance(uid, str) and uid and not uid.isspace()))


def _time(row: Mapping[str, Any]) -> float | None:
    at = row.get("timestamp")
    return float(at) if isinstance(at, (int, float)) and not isinstance(at, bool) and 0 < at < 1e11 else None


def missing_turns(recorded: Sequence[Entry], turns: Sequence[Entry]) -> Gaps:
    """Which of ``turns`` the record lacks."""
    ours = [entry.text for entry in recorded]
    by_uid = {uid: entry.text for entry in recorded for uid in entry.uids}
    theirs = [next((by_uid[uid] for uid in entry.uids if uid in by_uid), entry.text) for entry in turns]
    unknown, spare = _unknown(ours, theirs), Counter(ours) - Counter(theirs)
    gaps = _gaps(ours, theirs)
    loose = _spare_without_a_gap(ours, spare, gaps)
    missing: list[tuple[int, int]] = []
    told_otherwise = doubtful = 0
    for left, right in gaps:
        here = [place for place in right if place in unknown]
        unclaimed = sum(ours[place] in spare for place in left)
        if not unclaimed and not loose and not any(text in spare for text in _beside(theirs, right)):
            missing += [(place, left.start) for place in here]
        elif unclaimed >= len(here):
            told_otherwise += len(here)
        else:
            doubtful += len(here)
    return Gaps(tuple(missing), told_otherwise, doubtful)


def _spare_without_a_gap(ours: Sequence[str], spare: Counter[str], gaps: Sequence[tuple[range, range]]) -> bool:
    """Whether the record has a turn, later than the first that both have, at whose place the list has nothing: an undone one, or one that
    is told elsewhere in other words."""
    return any(ours[place] in spare for left, right in gaps if not right and left.start for place in left)


def _beside(theirs: Sequence[str], gap: range) -> list[str]:
    """The neighbours of a gap: where the record has one more often, which of them is which is not known."""
    return [theirs[place] for place in (gap.start - 1, gap.stop) if 0 <= place < len(theirs)]


def _unknown(ours: Sequence[str], theirs: Sequence[str]) -> set[int]:
    """Places of the list whose words the record does not have as often as the list has had them by then."""
    have, seen, found = Counter(ours), Counter[str](), set[int]()
    for place, text in enumerate(theirs):
        seen[text] += 1
        if seen[text] > have[text]:
            found.add(place)
    return found


def _gaps(ours: Sequence[str], theirs: Sequence[str]) -> list[tuple[range, range]]:
    """Between what both have: the places that only the record has, and those that only the list has; either may be none."""
    found: list[tuple[range, range]] = []
    left = right = 0
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        found.append((range(left, block.a), range(right, block.b)))
        left, right = block.a + block.size, block.b + block.size
    return found
