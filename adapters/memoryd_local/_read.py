"""Keyed memories, read from one connection."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice

import attrs

from memoryd.core import Hit, Memory, MemoryVersion, from_micros
from memoryd.recall import Scored
from memoryd.store import Connection, Row
from memoryd_local._hits import HitReader
from memoryd_local._rows import WRITE, blob, text

__all__ = ["Reader"]


@attrs.frozen(slots=True, eq=False, repr=False)
class Reader:
    """Answers everything but recall for the backend ``name``."""

    name: str
    connection: Connection
    sql: Mapping[str, str]

    def retrieve(self, user: str, key: str) -> Memory | None:
        row = self.connection.one(self.sql["current_memory"], (blob(user), blob(key)))
        return None if row is None else _memory(user, row)

    def list_keys(self, user: str) -> list[str]:
        return [text(row[0]) for row in self.connection.all(self.sql["current_keys"], (blob(user),))]

    def list_memories(self, user: str, limit: int | None, offset: int) -> list[Memory]:
        return [_memory(user, row) for row in self._current(user, -1 if limit is None else limit, offset)]

    def query(self, user: str, part: str, limit: int) -> list[Memory]:
        """The newest memories whose key or value has ``part``, in any case."""
        wanted = part.casefold()
        if not wanted or not limit:
            return []
        found = (row for row in self._current(user, -1, 0) if wanted in text(row[1]).casefold() or wanted in text(row[2]).casefold())
        return [_memory(user, row) for row in islice(found, limit)]

    def history(self, user: str, key: str, as_of: int | None) -> list[MemoryVersion]:
        versions = (_version(key, row) for row in self.connection.all(self.sql["values_of_key"], (blob(user), blob(key))))
        if as_of is None:
            return list(versions)
        at = from_micros(as_of)
        return [one for one in versions if one.valid_from <= at and (one.valid_until is None or at < one.valid_until)]

    def counts(self) -> dict[str, int]:
        (turns, memories, sessions), = self.connection.all(self.sql["counts"])
        return {"turns": turns, "memories": memories, "sessions": sessions}

    def find(self, user: str, id: str) -> Hit | None:
        """The turn, or the memory as it is now, whose id that is."""
        try:
            event_id = bytes.fromhex(id)
        except ValueError:
            return None
        with self.connection.transaction("DEFERRED"):
            event = self.connection.one(self.sql["find_event"], (event_id, blob(user)))
            line = None if event is None else self._line(*event)
            if event is None or line is None:
                return None
            labels = {row[0]: tuple(map(text, row[1:])) for row in self.connection.all(self.sql["labels_of_scope"], (line >> 32,))}
            reader = HitReader(self.name, self.connection, self.sql, labels)
            return next(reader.read([Scored(0.0, line, {})]), None)

    def _line(self, event: int, kind: int, user_line: int | None, assistant_line: int | None) -> int | None:
        """The line that shows an event: a turn's first text, a memory's current value."""
        if kind == WRITE:
            current = self.connection.one(self.sql["current_line"], (event,))
            return None if current is None else int(current[0])
        return user_line if user_line is not None else assistant_line

    def _current(self, user: str, limit: int, offset: int) -> Iterator[Row]:
        return self.connection.execute(self.sql["current_memories"], (blob(user), limit, offset))


def _memory(user: str, row: Row) -> Memory:
    event_id, key, value, kind, created, updated, metadata = row
    return Memory(
        id=event_id.hex(), key=text(key), value=text(value), user_id=user, type=text(kind),
        created_at=from_micros(created), updated_at=from_micros(updated), metadata=json.loads(metadata),
    )


def _version(key: str, row: Row) -> MemoryVersion:
    event_id, value, kind, since, until, metadata = row
    return MemoryVersion(
        event_id=event_id.hex(), key=key, value=text(value), type=text(kind), valid_from=from_micros(since),
        valid_until=None if until is None else from_micros(until), metadata=json.loads(metadata),
    )
