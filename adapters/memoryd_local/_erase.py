"""Forgetting in the tables: rows, index entries, history.  The bytes go when the index is merged and the WAL is emptied."""

from __future__ import annotations

from memoryd.core import Erased, Forget
from memoryd.store import Row
from memoryd_local._memories import relink
from memoryd_local._rows import DELETION, EDIT, TURN, WRITE, id_list, optional_blob
from memoryd_local._tables import Tables
from memoryd_local._turns import restore_texts

__all__ = ["erase_known", "forget", "forget_targets"]


def forget(tables: Tables, seq: int, event: Forget) -> None:
    """Drop what the event names by sequence number, and its sessions whole."""
    forget_targets(tables, event.targets)
    user = optional_blob(event.scope.user)
    for name in event.sessions:
        for session, scope in tables.all("sessions_named", optional_blob(name), user):
            _erase(tables, tables.all("turns_of_session", session, seq))
            tables.run("drop_session", session)
            _drop_unused(tables, scope)


def forget_targets(tables: Tables, targets: tuple[int, ...]) -> None:
    tables.flush()
    _erase(tables, tables.all("events_by_seq", id_list(targets)))


def erase_known(tables: Tables, event: Erased) -> None:
    """The log erased an event that is still here (it was restored from an older copy): so do we."""
    tables.flush()
    known = tables.one("event_known", event.event_id)
    if known is not None:
        _erase(tables, tables.all("event_by_row", known[0]))


def _erase(tables: Tables, events: list[Row]) -> None:
    for event, kind, _, *lines in events:
        for line in lines:
            if line is not None:
                tables.drop_line(line)
        if kind == TURN:
            tables.run("drop_edits_of_turn", event)
        elif kind == EDIT:
            _erase_edit(tables, event)
        elif kind in (WRITE, DELETION):
            _erase_change(tables, event)
        tables.run("drop_event", event)
    relink(tables)
    for scope in {event[2] for event in events}:
        _drop_unused(tables, scope)


def _erase_edit(tables: Tables, event: int) -> None:
    target = tables.one("target_of_edit", event)
    tables.run("drop_edit", event)
    if target is not None:
        restore_texts(tables, target[0])


def _erase_change(tables: Tables, event: int) -> None:
    key = tables.one("key_of_event", event)
    tables.run("drop_memory", event)
    if key is not None:
        tables.unlinked.add((key[0], key[1]))


def _drop_unused(tables: Tables, scope: int) -> None:
    """A user of whom nothing is left is forgotten by name, too."""
    if not tables.need("scope_in_use", scope)[0]:
        tables.run("drop_labels", scope)
        tables.run("drop_scope", scope)
