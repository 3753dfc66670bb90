"""Keyed memories and their history in the tables."""

from __future__ import annotations

import json

from memoryd.core import Deletion, MemoryWrite
from memoryd_local._chain import link
from memoryd_local._rows import DELETION, WRITE, Utterance, blob
from memoryd_local._tables import Tables

__all__ = ["add_deletion", "add_write", "relink"]


def add_write(tables: Tables, seq: int, write: MemoryWrite, said: Utterance) -> None:
    scope, session, label = tables.place(write.scope, write.at)
    line = scope.take_line(said.tokens)
    tables.add_line(tables.next_event(), line, said, None, 0, label, write.at)
    event = tables.add_event(
        seq, write.event_id, WRITE, scope.id, session, label, write.at, user=blob(write.value), user_line=line
    )
    _add_change(tables, seq, event, scope.id, blob(write.key), write)


def add_deletion(tables: Tables, seq: int, deletion: Deletion) -> None:
    """Deleting a key that is not there leaves nothing to undo, and is no error."""
    scope, session, label = tables.place(deletion.scope, deletion.at)
    event = tables.add_event(seq, deletion.event_id, DELETION, scope.id, session, label, deletion.at)
    _add_change(tables, seq, event, scope.id, blob(deletion.key), deletion)


def _add_change(tables: Tables, seq: int, event: int, scope: int, key: bytes, change: MemoryWrite | Deletion) -> None:
    """The usual change is newer than all others of its key and touches only the last of them; a late one relinks them all."""
    tables.flush()
    last = tables.one("last_change", scope, key)
    lifetime, created = (last[3], last[4]) if last is not None and not last[2] else (event, change.at)
    tables.run("add_memory", event, scope, key, *_described(change), lifetime, created, change.at)
    if last is None:
        return
    if last[1] is None or last[1] < seq:
        tables.run("close_value", change.at, last[0])
    else:
        tables.unlinked.add((scope, key))


def _described(change: MemoryWrite | Deletion) -> tuple[bool, bytes | None, str | None]:
    if isinstance(change, Deletion):
        return True, None, None
    return False, blob(change.type), json.dumps(change.metadata)


def relink(tables: Tables) -> None:
    """Work out anew the history of every key that was marked for it."""
    for scope, key in tables.unlinked:
        tables.run_many("link_change", list(link(tables.all("changes_of_key", scope, key))))
    tables.unlinked.clear()
