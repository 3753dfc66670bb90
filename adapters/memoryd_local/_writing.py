"""What the writing thread does besides projection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from memoryd.core import Cursor, Entry, Outcome
from memoryd.errors import StoreLocked
from memoryd.store import Connection
from memoryd_local._project import project, read_cursor

__all__ = ["WriteSide"]

_SLICE = 64  # pages of the index that one write transaction merges
_NO_WORK = 1  # changes that the command itself counts for
_TABLES = ("clear_event", "clear_line", "clear_memory", "clear_edit", "clear_session", "clear_label", "clear_scope")


@attrs.frozen(slots=True, eq=False, repr=False)
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

    def merge_index(self, *, begin: bool) -> bool:
        """One short slice of merging the whole index into one segment, which leaves out what was deleted; False: all done.

        ``begin`` marks everything that is there now to be merged; later slices go on with that.
        """
        with self.connection.transaction("IMMEDIATE"):
            changes = self.connection.run(self.sql["merge_index"], (-_SLICE if begin else _SLICE,))
        return changes > _NO_WORK

    def empty_log(self) -> None:
        """Move the write-ahead log into the file and cut it to nothing.

        Raises :class:`~memoryd.errors.StoreLocked` where a reader of another process still holds the log: call again later.
        """
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
