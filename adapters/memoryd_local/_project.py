"""Projection: log entries into memory.db, each exactly once, by any process.

The cursor is read and moved in the transaction of the rows.  Texts are analysed before the write lock is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from memoryd.core import (
    OK,
    Cursor,
    Deletion,
    Edit,
    Entry,
    Erased,
    Event,
    Forget,
    MemoryWrite,
    Outcome,
    SessionMark,
    Turn,
)
from memoryd.errors import ScopeMissing, StoreCorrupt
from memoryd.store import Connection
from memoryd_local._erase import erase_known, forget, forget_targets
from memoryd_local._memories import add_deletion, add_write, relink
from memoryd_local._rows import ASSISTANT, MEMORY, USER, Utterance, utterance
from memoryd_local._tables import Tables
from memoryd_local._turns import add_turn, edit_turn, mark_session

__all__ = ["project", "read_cursor"]

_MAX_LINES = 512
_MAX_CHARACTERS = 1 << 20
_Prepared = tuple[Entry, Sequence[Utterance]]


def read_cursor(connection: Connection, sql: Mapping[str, str]) -> Cursor:
    """How far the log was applied; an empty epoch and 0 where nothing was."""
    row = connection.one(sql["cursor"])
    if row is None or not isinstance(row[0], str) or not isinstance(row[1], int):
        path = str(connection.path)
        raise StoreCorrupt(f"{path} has lost its cursor; delete it, it is made anew from the log", path=path)
    return Cursor(*row)


def project(connection: Connection, sql: Mapping[str, str], entries: Sequence[Entry]) -> list[Outcome]:
    """Apply ``entries``, one outcome each: *ok* (also for what is there already), *gap* where the store is behind the first of them,
    *permanent* for an event that names no user."""
    outcomes: list[Outcome] = []
    for chunk in _chunks(entries):
        _forget_ahead(connection, sql, chunk[0][0])
        outcomes += _project_chunk(connection, sql, chunk)
        if outcomes[-1].kind == "gap":
            return outcomes + [outcomes[-1]] * (len(entries) - len(outcomes))
    return outcomes


def _chunks(entries: Sequence[Entry]) -> Iterator[list[_Prepared]]:
    """What fits one short write transaction, at least one event."""
    chunk: list[_Prepared] = []
    lines = characters = 0
    for entry in entries:
        said = _utterances(entry.event)
        size = sum(len(one.indexed) for one in said)
        if chunk and (_is_large(entry.event) or lines + len(said) > _MAX_LINES or characters + size > _MAX_CHARACTERS):
            yield chunk
            chunk, lines, characters = [], 0, 0
        chunk.append((entry, said))
        lines += max(1, len(said))
        characters += size
    if chunk:
        yield chunk


def _is_large(event: Event) -> bool:
    return isinstance(event, Forget) and len(event.targets) > _MAX_LINES


def _forget_ahead(connection: Connection, sql: Mapping[str, str], entry: Entry) -> None:
    """Do a large forget in short transactions, all but its last part, once everything before it is here.  Again does no harm."""
    event = entry.event
    if not isinstance(event, Forget):
        return
    for start in range(0, len(event.targets) - _MAX_LINES, _MAX_LINES):
        with connection.transaction("IMMEDIATE"):
            if read_cursor(connection, sql) != Cursor(entry.cursor.epoch, entry.seq - 1):
                return
            tables = Tables(connection, sql)
            forget_targets(tables, event.targets[start : start + _MAX_LINES])
            tables.finish()


def _utterances(event: Event) -> list[Utterance]:
    match event:
        case Turn():
            return [utterance(role, value) for role, value in ((USER, event.user), (ASSISTANT, event.assistant)) if value]
        case MemoryWrite():
            return [utterance(MEMORY, f"{event.key} {event.value}")]
        case Deletion() | Edit() | Forget() | SessionMark() | Erased():
            return []


def _project_chunk(connection: Connection, sql: Mapping[str, str], chunk: Sequence[_Prepared]) -> list[Outcome]:
    with connection.transaction("IMMEDIATE"):
        cursor = start = _cursor_for(connection, sql, chunk[0][0].cursor)
        tables = Tables(connection, sql)
        known = _known(tables, chunk)
        outcomes: list[Outcome] = []
        for entry, said in chunk:
            if entry.cursor.epoch != cursor.epoch or entry.seq > cursor.seq + 1:
                outcomes.append(Outcome("gap", f"applied up to {cursor.seq}, given {entry.seq}"))
            elif entry.seq <= cursor.seq:
                outcomes.append(OK)
            else:
                outcomes.append(_apply(tables, entry, said, known))
                cursor = entry.cursor
        relink(tables)
        tables.finish()
        if cursor != start:
            connection.run(sql["set_cursor"], (cursor.epoch, cursor.seq))
    return outcomes


def _cursor_for(connection: Connection, sql: Mapping[str, str], first: Cursor) -> Cursor:
    """Where to go on.  Another epoch of the log starts at its first event; what is here is then confirmed event by event."""
    cursor = read_cursor(connection, sql)
    if cursor.epoch == first.epoch or (cursor.epoch and first.seq != 1):
        return cursor
    connection.run(sql["unconfirm"])
    return Cursor(first.epoch, 0)


def _known(tables: Tables, chunk: Sequence[_Prepared]) -> set[bytes]:
    """The ids of those events that the store has already."""
    ids = json.dumps([entry.event.event_id.hex() for entry, _ in chunk])
    return {row[0] for row in tables.all("events_known", ids)}


def _apply(tables: Tables, entry: Entry, said: Sequence[Utterance], known: set[bytes]) -> Outcome:
    event = entry.event
    if event.event_id in known and not isinstance(event, Erased):
        _confirm(tables, entry)
        return OK
    try:
        _dispatch(tables, entry, said)
    except ScopeMissing as error:
        return Outcome("permanent", str(error))
    known.add(event.event_id)
    return OK


def _confirm(tables: Tables, entry: Entry) -> None:
    """An event that an earlier epoch brought takes its place in the new order."""
    tables.flush()
    known = tables.one("event_known", entry.event.event_id)
    if known is None:
        return
    tables.run("confirm", entry.seq, known[0])
    key = tables.one("key_of_event", known[0])
    if key is not None:
        tables.unlinked.add((key[0], key[1]))


def _dispatch(tables: Tables, entry: Entry, said: Sequence[Utterance]) -> None:
    event = entry.event
    match event:
        case Turn():
            add_turn(tables, entry.seq, event, said)
        case MemoryWrite():
            add_write(tables, entry.seq, event, said[0])
        case Deletion():
            add_deletion(tables, entry.seq, event)
        case Edit():
            edit_turn(tables, entry.seq, event)
        case Forget():
            forget(tables, entry.seq, event)
        case SessionMark():
            mark_session(tables, event)
        case Erased():
            erase_known(tables, event)
