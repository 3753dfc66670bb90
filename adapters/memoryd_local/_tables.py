"""What one write transaction collects and writes.

Rows go first, then the full-text index in the order of its ids, all in one transaction and without triggers.  Measured: a trigger costs
half as much again, an unsorted batch twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memoryd.core import Scope
from memoryd.store import Connection, Row
from memoryd_local._names import Names, ScopeRow, SessionRow
from memoryd_local._rows import Utterance

__all__ = ["Tables"]

class Tables:
    """The tables within one write transaction; :meth:`finish` before its end.

    Statements see rows only after :meth:`flush`, index entries only after :meth:`finish`.
    """

    def __init__(self, connection: Connection, sql: Mapping[str, str]) -> None:
        self.names = Names(connection, sql)
        self.unlinked: set[tuple[int, bytes]] = set()
        self._connection = connection
        self._sql = sql
        self._next: int = self.need("last_event")[0] + 1
        self._events: list[Row] = []
        self._lines: list[Row] = []
        self._indexed: dict[int, str] = {}

    # -- adding ----------------------------------------------------------------------------------------------------------------

    def place(self, scope: Scope, at: int) -> tuple[ScopeRow, SessionRow | None, int]:
        """The rows of a scope's user, session and labels, made if missing."""
        user = self.names.scope(scope.need_user())
        return user, self.names.session(user.id, scope.session, at), self.names.label(user.id, scope)

    def next_event(self) -> int:
        """The id of the event that :meth:`add_event` adds next; its lines carry it."""
        return self._next

    def add_event(
        self, seq: int, event_id: bytes, kind: int, scope: int, session: SessionRow | int | None, label: int, at: int, *,
        turn_id: bytes | None = None, user: bytes | None = None, assistant: bytes | None = None,
        user_line: int | None = None, assistant_line: int | None = None,
    ) -> int:
        session_id = session.id if isinstance(session, SessionRow) else session
        self._events.append(
            (self._next, seq, event_id, kind, scope, session_id, label, at, turn_id, user, assistant, user_line, assistant_line)
        )
        self._next += 1
        return self._next - 1

    def add_line(self, event: int, line: int, said: Utterance, session: int | None, place: int, label: int, at: int) -> None:
        self._lines.append((line, event, said.role, session, place, said.tokens, said.flags, label, at))
        self._indexed[line] = said.indexed

    def drop_line(self, line: int) -> None:
        """Take a line out of the table, the index and its scope's totals."""
        row = self.one("take_line", line)
        if row is not None:
            self.run("shrink_scope", line >> 32, 1, row[0])
        if self._indexed.pop(line, None) is None:
            self.run("unindex_line", line)

    # -- writing ---------------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what was collected so far, all but the full-text index."""
        self._connection.executemany(self._sql["add_event"], self._events)
        self._connection.executemany(self._sql["add_line"], self._lines)
        self.names.save()
        self._events.clear()
        self._lines.clear()

    def finish(self) -> None:
        self.flush()
        self._connection.executemany(self._sql["index_line"], sorted(self._indexed.items()))
        self._indexed.clear()

    # -- statements by name ----------------------------------------------------------------------------------------------------

    def one(self, statement: str, *values: object) -> Row | None:
        return self._connection.one(self._sql[statement], values)

    def need(self, statement: str, *values: object) -> tuple[Any, ...]:
        """The row of a statement that always has one."""
        row = self.one(statement, *values)
        assert row is not None
        return row

    def all(self, statement: str, *values: object) -> list[Row]:
        return self._connection.all(self._sql[statement], values)

    def run(self, statement: str, *values: object) -> None:
        self._connection.run(self._sql[statement], values)

    def run_many(self, statement: str, rows: list[Row]) -> None:
        self._connection.executemany(self._sql[statement], rows)
