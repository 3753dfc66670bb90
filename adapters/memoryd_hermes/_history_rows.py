"""What was said in the rows of a session, each once.  Pure.

A compaction writes the rows that it keeps once more, around a summary: the first ones before it, the last ones behind it.  Newer hosts
give a copy the id or the time of its original, older ones neither; there it is known by its place.  A branch begins with a copy of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from memoryd.core import evidence_of, normalised, row_text
from memoryd_hermes._echo import clean_row

__all__ = ["Exchange", "Row", "exchanges", "read_row", "said_once"]

_STEER = "steer"
_HOST_TEXT = (
    "[System:", "[System note:", "[SYSTEM]", "[Runtime note:", "[CONTEXT", "[IMPORTANT: Background", "[Your active task list",
    "[Planning state preserved", "[ASYNC DELEGATION", "Cronjob Response:",
)  # fmt: skip
_SUMMARY = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]", "[PRIOR CONTEXT")
_PRIOR, _PRIOR_END = "[PRIOR CONTEXT", "[END OF PRIOR CONTEXT"  # a summary that was joined to a kept row, behind its words
_FRAME, _FRAME_END = "[OUT-OF-BAND USER MESSAGE", "[/OUT-OF-BAND USER MESSAGE]"  # what the user said while the agent worked


@attrs.frozen(slots=True)
class Row:
    """One row.  ``text`` is what its role said, empty where nobody did; ``mine`` says that no person or agent wrote it but the host;
    ``at`` is in seconds since the epoch."""

    role: str
    text: str = attrs.field(repr=False)
    at: float | None = None
    uid: str = ""
    summary: bool = False
    mine: bool = False
    calls: bool = False

    def is_copy_of(self, other: Row) -> bool:
        same = (self.role, self.text) == (other.role, other.text)
        return same and not (self.uid and other.uid and self.uid != other.uid)


@attrs.frozen(slots=True)
class Exchange:
    """A turn: ``told`` is the text that it is known by, ``user`` what the user said of it; ``open``: the answer may still come."""

    told: str = attrs.field(repr=False)
    user: str = attrs.field(repr=False)
    assistant: str = attrs.field(default="", repr=False)
    at: float | None = None
    open: bool = True


def read_row(row: Mapping[str, Any]) -> Row:
    """A row of the file, its content decoded."""
    cleaned = clean_row({"role": row["role"], "content": row["content"]})
    text, role = normalised(row_text(cleaned["content"])), str(row["role"])
    summary = bool(row["_compressed_summary"]) or text.startswith(_SUMMARY)
    mine = summary or row["display_kind"] not in (None, "", _STEER) or '"model_only":true' in str(row["display_metadata"]).replace(" ", "")
    mine = mine or (role == "user" and text.startswith(_HOST_TEXT))
    said = evidence_of({"role": role, "content": _prior(text) if summary else text})
    at = row["timestamp"]
    return Row(
        role,
        said.text if said is not None and (summary or not mine or role == "user") else "",
        float(at) if isinstance(at, (int, float)) and 0 < at < 1e11 else None,
        str(row["message_uid"] or ""),
        summary,
        mine,
        bool(row["tool_calls"]) and row["tool_calls"] != "[]",
    )


def _prior(text: str) -> str:
    """The words that a summary was joined to."""
    before, found, _ = text.partition(_PRIOR_END)
    return before.partition("\n")[2] if found and text.startswith(_PRIOR) else ""


# -- each once ---------------------------------------------------------------------------------------------------------------


def said_once(rows: Iterable[Row], before: Sequence[Row] = (), *, branch: bool = False) -> tuple[list[Row], list[Row]]:
    """The rows that are no copies, and those that the session goes on with; ``before`` is what the session that it came from went on
    with."""
    waiting = list(_split(rows))
    skipped = _common(before, waiting) if branch else 0
    fresh: list[Row] = []
    live = [*(before[:skipped] if branch else before)]
    seen = {mark for row in before for mark in _marks(row)}
    place = skipped
    while place < len(waiting):
        row = waiting[place]
        place += 1
        if not row.summary:
            live.append(row)
            if seen.isdisjoint(_marks(row)):
                fresh.append(row)
            seen.update(_marks(row))
            continue
        while place < len(waiting) and waiting[place].summary:
            place += 1
        head = _head(live)
        told, live = live[: len(live) - head], live[len(live) - head :]
        fresh = [kept for kept in fresh if not any(kept is again for again in live)]
        tail = _tail(told, waiting[place:])
        live += waiting[place : place + tail]
        place += tail
    return fresh, live


def _split(rows: Iterable[Row]) -> Iterable[Row]:
    """The words that a summary was joined to are a row of their own, behind it; what else nobody said has no part in the comparison."""
    for row in rows:
        if row.summary:
            yield attrs.evolve(row, text="")
            if row.text:
                yield attrs.evolve(row, summary=False, mine=False)
        elif row.text or row.calls or row.role == "tool":
            yield row


def _marks(row: Row) -> list[object]:
    """What a copy has in common with its original, and no other row with it."""
    if not row.text:
        return []
    return [mark for mark in (row.uid, row.at is not None and (row.role, row.at, row.text)) if mark]


def _common(before: Sequence[Row], rows: Sequence[Row]) -> int:
    count = 0
    while count < min(len(before), len(rows)) and rows[count].is_copy_of(before[count]):
        count += 1
    return count


def _head(live: Sequence[Row]) -> int:
    """How many of the last rows are the first ones once more."""
    for count in range(len(live) // 2, 0, -1):
        if all(map(Row.is_copy_of, live[len(live) - count :], live[:count])):
            return count
    return 0


def _tail(told: Sequence[Row], rows: Sequence[Row]) -> int:
    """How many of the first rows are the last ones of what was told once more."""
    for count in range(min(len(told), len(rows)), 0, -1):
        if all(map(Row.is_copy_of, rows[:count], told[len(told) - count :])):
            return count
    return 0


# -- turns ---------------------------------------------------------------------------------------------------------------------


def exchanges(rows: Iterable[Row]) -> list[Exchange]:
    """The turns, oldest first; an answer to the host itself is a turn without words of the user."""
    found: list[Exchange] = []
    for row in rows:
        if row.role == "user" and row.text:
            found.append(Exchange(row.text, "" if row.mine else _unframed(row.text), at=row.at))
        elif found and row.role == "assistant":
            text = row.text or found[-1].assistant
            found[-1] = attrs.evolve(found[-1], assistant=text, open=row.calls or not text)
        elif found and row.role == "tool":
            found[-1] = attrs.evolve(found[-1], open=True)
    return [one for one in found if one.user or one.assistant]


def _unframed(text: str) -> str:
    if text.startswith(_FRAME) and text.endswith(_FRAME_END):
        return text.partition("\n")[2].removesuffix(_FRAME_END).strip() or text
    return text
