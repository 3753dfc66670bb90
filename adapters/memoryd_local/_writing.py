"""What the writing thread does besides projection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from memoryd.core import Cursor, Entry, Outcome
from memoryd.errors import StoreLocked
from memoryd.store import Connection
from memoryd_local._project import project, read_cursor

__all__ = ["WriteSide"]

_TABLES = ("clear_event", "clear_line", "clear_memory", "clear_edit", "clear_session", "clear_label", "clear_scope")


@attrs.frozen(slots=True)
class WriteSide:
    """The writing connection and its work; one thread."""

    connection: Connection
    sql: Mapping[str, str]

    def project(self, entries: Sequence[Entry]) -> list[Outcome]:
        return project(self.connection, self.sql, entries)

    def position(self) -> Cursor:
        return read_cursor(self.connection, self.sql)

    def prove(self) -> None:
        """A real write and a real read."""
        with self.connection.transaction("IMMEDIATE"):
            self.connection.run(self.sql["touch_cursor"])
        self.position()

    def erase_traces(self) -> None:
        """Merge the index, so that no old segment holds a forgotten word, and empty the write-ahead log into the file.

        Raises :class:`~memoryd.errors.StoreLocked` where a reader of another process still holds the log: call again later.
        """
        with self.connection.transaction("IMMEDIATE"):
            self.connection.run(self.sql["optimize_index"])
        left, moved = self.connection.checkpoint("TRUNCATE")
        if left != moved:
            path = str(self.connection.path)
            raise StoreLocked(f"{path}: another process reads the write-ahead log; erasing goes on later", path=path)

    def check_index(self) -> None:
        """Raise :class:`~memoryd.errors.StoreCorrupt` where the full-text index is damaged."""
        self.connection.run(self.sql["check_index"])

    def rebuild(self) -> None:
        """Empty every table, so that the log is projected anew from its first event."""
        with self.connection.transaction("IMMEDIATE"):
            for statement in _TABLES:
                self.connection.run(self.sql[statement])
            self.connection.run(self.sql["empty_index"])
            self.connection.run(self.sql["set_cursor"], ("", 0))
