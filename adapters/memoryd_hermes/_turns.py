"""Turns in a host's message list, and which of them are missing from what is recorded.  Pure.

The list and the record may differ though nothing is missing: the host masks a secret that it learnt later, merges rows, expands a
command.  So the two are laid side by side.  A turn that the record does not know is missing only where nothing of the record stands
unclaimed at its place; where something does it is that, told otherwise, and where the numbers do not fit it is in doubt: not added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, TypeAlias

import attrs

from memoryd.core import evidence_of, row_text
from memoryd_hermes._echo import clean_row

__all__ = ["Entry", "Gaps", "SpokenTurn", "is_cut", "missing_turns", "row_uids", "rows_outside", "spoken_turns"]


Words: TypeAlias = tuple[str, str]
_ROLES = ("user", "assistant", "tool", "function")


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
    """What the record keeps of a turn: the digests of the user's text and of the answer, and the host's ids of the user's row."""

    text: str
    answer: str = ""
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
        if not isinstance(row, Mapping) or row.get("role") not in _ROLES:
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


def rows_outside(messages: Sequence[Any], paused: Callable[[int], bool]) -> list[Any]:
    """The rows that were not said at a time that was ``paused``, in microseconds since the epoch; one without a time goes with the one
    before it."""
    kept: list[Any] = []
    out = False
    for row in messages:
        at = _time(row) if isinstance(row, Mapping) else None
        out = out if at is None else paused(int(at * 1_000_000))
        if not out:
            kept.append(row)
    return kept


def is_cut(messages: Sequence[Any]) -> bool:
    """Whether earlier turns of ``messages`` were compacted away: a row speaks that nobody said."""
    rows = (row for row in messages if isinstance(row, Mapping) and row.get("role") in ("user", "assistant"))
    return any(evidence_of(row) is None and row_text(row.get("content")).strip() for row in rows)


def missing_turns(recorded: Sequence[Entry], turns: Sequence[Entry], *, cut: bool = False) -> Gaps:
    """Which of ``turns`` the record lacks; ``cut``: what was said before them was compacted away."""
    ours = [(entry.text, entry.answer) for entry in recorded]
    theirs = _as_recorded(recorded, turns)
    unknown, spare = _unknown(ours, theirs), Counter(ours) - Counter(theirs)
    gaps = _gaps(ours, theirs)
    missing: list[tuple[int, int]] = []
    told_otherwise = doubtful = 0
    for left, right in gaps:
        here = [place for place in right if place in unknown]
        unclaimed = sum(ours[place] in spare for place in left)
        if not unclaimed:
            missing += [(place, left.start) for place in here]
        elif unclaimed >= len(here):
            told_otherwise += len(here)
        else:
            doubtful += len(here)
    gone = gaps[0][0].stop if cut else 0  # all else of the record is somewhere in the list
    if len(missing) > len(theirs) - (len(ours) - gone):
        return Gaps((), told_otherwise, doubtful + len(missing))
    return Gaps(tuple(missing), told_otherwise, doubtful)


def _as_recorded(recorded: Sequence[Entry], turns: Sequence[Entry]) -> list[Words]:
    """The turns by the words that the record has of them: found by the host's id, by text and answer, or by the text alone."""
    by_uid = {uid: (entry.text, entry.answer) for entry in recorded for uid in entry.uids}
    known = Counter((entry.text, entry.answer) for entry in recorded)
    found: list[Words | None] = []
    for entry in turns:
        words = next((by_uid[uid] for uid in entry.uids if uid in by_uid), (entry.text, entry.answer))
        found.append(words if known[words] > 0 else None)
        known[words] -= 1
    left: dict[str, list[Words]] = {}
    for words, count in known.items():
        left.setdefault(words[0], []).extend([words] * count)
    newest_first = zip(reversed(found), reversed(turns), strict=True)
    return [words or _other_answer(left, entry) for words, entry in newest_first][::-1]


def _other_answer(left: dict[str, list[Words]], entry: Entry) -> Words:
    """The newest recorded turn with the same text that no other one is; else the turn's own words."""
    same = left.get(entry.text)
    return same.pop() if same else (entry.text, entry.answer)


def _unknown(ours: Sequence[Words], theirs: Sequence[Words]) -> set[int]:
    """Places of the list whose words the record does not have as often as the list has had them by then."""
    have, seen, found = Counter(ours), Counter[Words](), set[int]()
    for place, words in enumerate(theirs):
        seen[words] += 1
        if seen[words] > have[words]:
            found.add(place)
    return found


def _gaps(ours: Sequence[Words], theirs: Sequence[Words]) -> list[tuple[range, range]]:
    """Between what both have: the places that only the record has, and those that only the list has; either may be none."""
    found: list[tuple[range, range]] = []
    left = right = 0
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        found.append((range(left, block.a), range(right, block.b)))
        left, right = block.a + block.size, block.b + block.size
    return found
