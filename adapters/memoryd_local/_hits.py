"""From ranked lines to hits: texts, names, the state of memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from memoryd.core import Hit, Query, from_micros
from memoryd.recall import fold_copies, newest_first
from memoryd.store import Connection, Row
from memoryd_local._rows import ASSISTANT, MEMORY, id_list, optional_text, text

__all__ = ["Found", "HitReader"]

_ROLES = ("user", "assistant", None)


@attrs.frozen(slots=True)
class Found:
    """A ranked line: where it stands, and its event."""

    score: float
    why: Mapping[str, float]
    line: int
    event: int
    role: int


class HitReader:
    """Reads what belongs to lines; ``labels`` are the names of agent, workspace and platform by row."""

    def __init__(self, name: str, connection: Connection, sql: Mapping[str, str], labels: Mapping[int, Sequence[str]]) -> None:
        self._name = name
        self._connection = connection
        self._sql = sql
        self._labels = labels

    def collect(self, found: Sequence[Found], query: Query) -> list[Hit]:
        """The first ``query.limit`` different hits: an event once, in its best line; equal texts once, with a count."""
        hits: list[Hit] = []
        for block in _blocks(_one_an_event(found), 2 * query.limit + 20):
            hits = fold_copies([*hits, *self.read(block, query.as_of)])
            if len(hits) >= query.limit:
                break
        return newest_first(hits)[: query.limit]

    def read(self, found: Sequence[Found], as_of: int | None = None) -> Iterator[Hit]:
        """The hits for lines, in order.  A deleted memory gives none; the value that holds now stands before a superseded one."""
        memories = self._memories(one.event for one in found if one.role == MEMORY)
        shown = [one for one in found if one.role != MEMORY or _is_shown(memories.get(one.event), as_of)]
        if as_of is None:
            shown = list(_with_current(shown, memories))
            memories |= self._memories(one.event for one in shown if one.event not in memories and one.role == MEMORY)
        events = {row[0]: row for row in self._by_ids("texts_of_events", (one.event for one in shown))}
        names: dict[int, bytes] = dict(self._by_ids("session_names", {row[4] for row in events.values() if row[4] is not None}))
        for one in shown:
            yield self._hit(one, events[one.event], memories.get(one.event), names, as_of)

    def texts(self, lines: Sequence[tuple[int, int, int]]) -> dict[int, str]:
        """The stored texts of lines given as (line, event, role)."""
        events = {row[0]: row for row in self._by_ids("texts_of_events", {event for _, event, _ in lines})}
        return {line: _text_of(role, events[event]) for line, event, role in lines}

    def _memories(self, events: Iterable[int]) -> dict[int, Row]:
        return {row[0]: row for row in self._by_ids("memories_of_events", events)}

    def _by_ids(self, statement: str, ids: Iterable[int]) -> list[Row]:
        wanted = id_list(ids)
        return self._connection.all(self._sql[statement], (wanted,)) if wanted != "[]" else []

    def _hit(self, one: Found, event: Row, memory: Row | None, names: Mapping[int, bytes], as_of: int | None) -> Hit:
        session = names.get(event[4])
        until = memory[4] if memory is not None and as_of is None else None
        return Hit(
            id=(event[2] if memory is None else memory[2]).hex(),
            kind="turn" if memory is None else "memory",
            text=_text_of(one.role, event),
            score=one.score,
            at=from_micros(event[6]),
            source=f"{self._name}:{'turn' if memory is None else 'memory'}",
            seq=event[1],
            turn_id=optional_text(event[7]),
            session=optional_text(session),
            role=_ROLES[one.role],
            key=None if memory is None else text(memory[1]),
            superseded=until is not None,
            valid_until=None if until is None else from_micros(until),
            labels=_named(self._labels.get(event[5], ())),
            why=one.why,
        )


def _one_an_event(found: Sequence[Found]) -> list[Found]:
    best: dict[int, Found] = {}
    for one in found:
        best.setdefault(one.event, one)
    return list(best.values())


def _blocks(found: Sequence[Found], size: int) -> Iterator[Sequence[Found]]:
    for start in range(0, len(found), size):
        yield found[start : start + size]


def _is_shown(memory: Row | None, as_of: int | None) -> bool:
    """Whether a value is shown: one that held at ``as_of``, or any of a key that is there now."""
    if memory is None:
        return False
    _, _, _, since, until, current = memory
    if as_of is None:
        return current is not None
    return since <= as_of and (until is None or as_of < until)


def _with_current(found: Sequence[Found], memories: Mapping[int, Row]) -> Iterator[Found]:
    """Before the first superseded value of a key its current one, where that did not match by itself."""
    there = {one.event for one in found}
    for one in found:
        current = memories[one.event][5] if one.role == MEMORY else None
        if current is not None and current not in there:
            there.add(current)
            yield attrs.evolve(one, event=current, line=0)
        yield one


def _text_of(role: int, event: Row) -> str:
    return text((event[9] if role == ASSISTANT else event[8]) or b"")


def _named(names: Sequence[str]) -> dict[str, str]:
    return {label: name for label, name in zip(("agent", "workspace", "platform"), names, strict=False) if name}
