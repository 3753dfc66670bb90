"""The names that lines refer to by number: users, sessions, labels.  Read once a transaction, written back once."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from memoryd.core import Scope
from memoryd.store import Connection
from memoryd_local._rows import blob, text

__all__ = ["Names", "ScopeRow", "SessionRow"]


@attrs.define(slots=True, eq=False, repr=False)
class ScopeRow:
    id: int
    next: int
    lines: int
    tokens: int

    def take_line(self, tokens: int) -> int:
        """The id of a new line of this scope, which it is counted in."""
        self.next += 1
        return self.keep_line(self.id << 32 | (self.next - 1), tokens)

    def keep_line(self, line: int, tokens: int) -> int:
        """Count a line that gets new words under its old id."""
        self.lines += 1
        self.tokens += tokens
        return line


@attrs.define(slots=True, eq=False, repr=False)
class SessionRow:
    id: int
    places: int
    seen: int
    mark: str

    def take_place(self) -> int:
        self.places += 1
        return self.places - 1


class Names:
    """Valid within one write transaction; :meth:`save` before its end."""

    def __init__(self, connection: Connection, sql: Mapping[str, str]) -> None:
        self._connection = connection
        self._sql = sql
        self._scopes: dict[str, ScopeRow] = {}
        self._sessions: dict[tuple[int, str], SessionRow] = {}
        self._labels: dict[tuple[int, str, str, str], int] = {}

    def scope(self, user: str) -> ScopeRow:
        """The row of a user, made if missing."""
        row = self._scopes.get(user)
        if row is None:
            name = (blob(user),)
            found = self._connection.one(self._sql["scope_by_name"], name)
            row = ScopeRow(*found) if found else ScopeRow(self._add("add_scope", name), 1, 0, 0)
            self._scopes[user] = row
        return row

    def scope_of(self, id: int) -> ScopeRow:
        """The row of a user that is there, by its id."""
        row = self._connection.one(self._sql["scope_name"], (id,))
        assert row is not None
        return self.scope(text(row[0]))

    def session(self, scope: int, name: str | None, at: int) -> SessionRow | None:
        """The row of a session, made if missing: a session exists from its first event, whatever became of an earlier row."""
        if name is None:
            return None
        row = self._sessions.get((scope, name))
        if row is None:
            key = (scope, blob(name))
            found = self._connection.one(self._sql["session_by_name"], key)
            row = SessionRow(*found) if found else SessionRow(self._add("add_session", (*key, at)), 0, at, "")
            self._sessions[scope, name] = row
        row.seen = max(row.seen, at)
        return row

    def label(self, scope_row: int, scope: Scope) -> int:
        key = (scope_row, scope.agent or "", scope.workspace or "", scope.platform or "")
        row = self._labels.get(key)
        if row is None:
            names = (scope_row, *(blob(name) for name in key[1:]))
            found = self._connection.one(self._sql["label_by_names"], names)
            row = self._labels[key] = int(found[0]) if found else self._add("add_label", names)
        return row

    def save(self) -> None:
        """Write the counters back and forget everything that was read."""
        self._connection.executemany(self._sql["save_scope"], [attrs.astuple(row) for row in self._scopes.values()])
        self._connection.executemany(self._sql["save_session"], [attrs.astuple(row) for row in self._sessions.values()])
        self._scopes.clear()
        self._sessions.clear()
        self._labels.clear()

    def _add(self, statement: str, values: tuple[object, ...]) -> int:
        row = self._connection.one(self._sql[statement], values)
        assert row is not None
        return int(row[0])
