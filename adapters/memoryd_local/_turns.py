"""Turns and their edits in the tables."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.core import Edit, SessionMark, Turn
from memoryd.store import Row
from memoryd_local._rows import ASSISTANT, EDIT, TURN, USER, Utterance, blob, optional_blob, text, utterance
from memoryd_local._tables import Tables

__all__ = ["add_turn", "edit_turn", "mark_session", "restore_texts"]


def add_turn(tables: Tables, seq: int, turn: Turn, utterances: Sequence[Utterance]) -> None:
    scope, session, label = tables.place(turn.scope, turn.at)
    event = tables.next_event()
    lines: dict[int, int] = {}
    for said in utterances:
        lines[said.role] = line = scope.take_line(said.tokens)
        place = session.take_place() if session is not None else 0
        tables.add_line(event, line, said, session.id if session is not None else None, place, label, turn.at)
    tables.add_event(
        seq, turn.event_id, TURN, scope.id, session, label, turn.at, turn_id=optional_blob(turn.turn_id),
        user=blob(turn.user), assistant=blob(turn.assistant), user_line=lines.get(USER), assistant_line=lines.get(ASSISTANT),
    )


def mark_session(tables: Tables, mark: SessionMark) -> None:
    """A mark alone makes a session, too; only its word is kept."""
    _, session, _ = tables.place(mark.scope, mark.at)
    if session is not None:
        session.mark = mark.mark.encode("utf-8", "replace").decode()


def edit_turn(tables: Tables, seq: int, edit: Edit) -> None:
    """A text that the edit does not give stays.  The original is kept, so that forgetting the edit brings it back."""
    tables.flush()
    turn = tables.one("turn_by_event_id", edit.target)
    if turn is None:
        return
    row, scope, session, label, _, user, assistant, *_ = turn
    event = tables.add_event(seq, edit.event_id, EDIT, scope, session, label, edit.at)
    tables.flush()
    tables.run("keep_original", row, user, assistant)
    tables.run("add_edit", event, row, optional_blob(edit.user), optional_blob(edit.assistant))
    restore_texts(tables, row)


def restore_texts(tables: Tables, row: int) -> None:
    """Make a turn's texts what its original and its edits say, in order of acceptance."""
    turn = tables.one("turn_by_id", row)
    if turn is None:
        return
    user = assistant = b""
    for new_user, new_assistant in tables.all("texts_of_turn", row):
        user = user if new_user is None else new_user
        assistant = assistant if new_assistant is None else new_assistant
    lines = [_replace_line(tables, turn, role, value) for role, value in ((USER, user), (ASSISTANT, assistant))]
    tables.run("set_texts", row, user, assistant, *lines)


def _replace_line(tables: Tables, turn: Row, role: int, value: bytes) -> int | None:
    """The line of one of the turn's texts, which keeps its place; None for an empty text."""
    row, scope, session, label, at, _, _, *lines = turn
    line, sibling = lines[role], lines[1 - role]
    places = [found[0] for near in (line, sibling) if near is not None and (found := tables.one("line_place", near))]
    if line is not None:
        tables.drop_line(line)
    if not value:
        return None
    said = utterance(role, text(value))
    place = places[0] if places else 0
    owner = tables.names.scope_of(scope)
    line = owner.take_line(said.tokens) if line is None else owner.keep_line(line, said.tokens)
    tables.add_line(row, line, said, session, place, label, at)
    tables.flush()
    return int(line)
