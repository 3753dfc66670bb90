"""From ranked lines to hits: texts, names, the state of memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import attrs

from memoryd.core import Hit, Query, from_micros
from memoryd.recall import Scored, fold_copies, newest_first
from memoryd.store import Connection, Row
from memoryd_local._rows import ASSISTANT, MEMORY, id_list, optional_text, text

__all__ = ["HitReader"]

_ROLES = ("user", "assistant", None)
_LABELS = ("agent", "workspace", "platform")
_MORE = 10  # lines read beyond the limit at first, since some fold


class _Said(NamedTuple):
    """A line with its event, as ``events_of_lines`` gives it."""

    line: int
    role: int
    event: int
    seq: int | None
    event_id: bytes
    session: int | None
    label: int
    at: int
    turn_id: bytes | None
    user: bytes | None
    assistant: bytes | None

    @property
    def text(self) -> str:
        return text((self.assistant if self.role == ASSISTANT else self.user) or b"")


class _Value(NamedTuple):
    """A value of a key, as ``memories_of_events`` gives it; ``current`` and its line are what the key holds now, in the same lifetime."""

    event: int
    key: bytes
    memory_id: bytes
    since: int
    until: int | None
    current: int | None
    current_line: int | None

    def is_shown(self, as_of: int | None) -> bool:
        """Whether recall shows it: what held at ``as_of``, or any value of a key that is there now."""
        if as_of is None:
            return self.current is not None
        return self.since <= as_of and (self.until is None or as_of < self.until)


@attrs.frozen(slots=True, eq=False, repr=False)
class HitReader:
    """Reads what belongs to lines, for the backend ``name``; ``labels`` are the names of agent, workspace and platform by row."""

    name: str
    connection: Connection
    sql: Mapping[str, str]
    labels: Mapping[int, Sequence[str]]

    def collect(self, ranked: Iterator[Scored], query: Query) -> list[Hit]:
        """The first ``query.limit`` different hits: an event once, in its best line; equal texts once, with a count."""
        hits: list[Hit] = []
        seen: set[int] = set()
        while len(hits) < query.limit and (block := list(islice(ranked, query.limit + _MORE))):
            hits = fold_copies([*hits, *self.read(block, query.as_of, seen)])
        return newest_first(hits)[: query.limit]

    def read(self, ranked: Sequence[Scored], as_of: int | None = None, seen: set[int] | None = None) -> Iterator[Hit]:
        """The hits for lines, in order; events in ``seen`` are left out and added.

        A deleted memory gives none.  Before the first superseded value of a key comes its current one, also if that did not match.
        """
        taken: set[int] = set() if seen is None else seen
        said = self.said(one.id for one in ranked)
        values = self._values(one.event for one in said.values() if one.role == MEMORY)
        if as_of is None:
            said |= self.said(value.current_line for value in values.values() if value.current_line is not None)
            values |= self._values(value.current for value in values.values() if value.current not in (None, value.event))
        sessions = self._sessions({one.session for one in said.values()})
        for scored in ranked:
            for line in _in_order(scored.id, said, values):
                one = said[line]
                value = values.get(one.event)
                if one.event not in taken and (one.role != MEMORY or (value is not None and value.is_shown(as_of))):
                    taken.add(one.event)
                    yield self._hit(scored, one, value, sessions, as_of)

    def said(self, lines: Iterable[int]) -> dict[int, _Said]:
        """Lines by id, with their events."""
        return {row[0]: _Said(*row) for row in self._by_ids("events_of_lines", lines)}

    def _values(self, events: Iterable[int | None]) -> dict[int, _Value]:
        return {row[0]: _Value(*row) for row in self._by_ids("memories_of_events", events)}

    def _sessions(self, sessions: set[int | None]) -> dict[int | None, str]:
        return {row[0]: text(row[1]) for row in self._by_ids("session_names", sessions - {None})}

    def _by_ids(self, statement: str, ids: Iterable[int | None]) -> list[Row]:
        wanted = id_list(ids)
        return self.connection.all(self.sql[statement], (wanted,)) if wanted != "[]" else []

    def _hit(
        self, scored: Scored, one: _Said, value: _Value | None, sessions: Mapping[int | None, str], as_of: int | None
    ) -> Hit:
        until = value.until if value is not None and as_of is None else None
        return Hit(
            id=(one.event_id if value is None else value.memory_id).hex(),
            kind="turn" if value is None else "memory",
            text=one.text,
            score=scored.score,
            at=from_micros(one.at),
            source=f"{self.name}:{'turn' if value is None else 'memory'}",
            seq=one.seq,
            turn_id=optional_text(one.turn_id),
            session=sessions.get(one.session),
            role=_ROLES[one.role],
            key=None if value is None else text(value.key),
            superseded=until is not None,
            valid_until=None if until is None else from_micros(until),
            labels={label: name for label, name in zip(_LABELS, self.labels.get(one.label, ()), strict=False) if name},
            why=scored.why,
        )


def _in_order(line: int, said: Mapping[int, _Said], values: Mapping[int, _Value]) -> Iterator[int]:
    """The line, and before it the line of its key's current value."""
    if line in said:
        value = values.get(said[line].event)
        if value is not None and value.current_line is not None and value.current_line in said:
            yield value.current_line
        yield line
