"""A host's ``state.db``, read: its sessions and their rows.  Columns differ between versions and are found by name.

A host may write meanwhile: the file is opened read-only, and every statement is read to its end at once, so that no lock stays.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from memoryd.errors import InvalidInput

__all__ = ["HistoryFile", "open_history"]

_TABLES: Mapping[str, tuple[str, ...]] = {
    "sessions": (
        "id", "source", "user_id", "session_key", "chat_id", "chat_type", "thread_id", "profile_name", "cwd", "model_config",
        "parent_session_id", "started_at", "ended_at",
    ),
    "messages": (
        "session_id", "role", "content", "timestamp", "tool_calls", "active", "compacted", "observed", "message_uid", "display_kind",
        "display_metadata", "_compressed_summary",
    ),
}  # fmt: skip
_NEEDED: Mapping[str, frozenset[str]] = {"sessions": frozenset({"id"}), "messages": frozenset({"session_id", "role", "content"})}
_AS_JSON = "\x00json:"  # before a content that is no plain text
_WAIT = 10.0  # seconds, for a host that commits


class HistoryFile:
    """One open ``state.db``."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._columns = {table: self._found(table) for table in _TABLES}
        if any(not _NEEDED[table] <= columns for table, columns in self._columns.items()):
            raise InvalidInput("PATH", f"{path}: is no state.db of Hermes: it has no sessions with messages")

    def _found(self, table: str) -> set[str]:
        return {row[1] for row in self._connection.execute(f'PRAGMA table_info("{table}")')}

    def sessions(self) -> list[dict[str, Any]]:
        """All sessions, the oldest first; what a version has no column for is None."""
        order = "started_at, rowid" if "started_at" in self._columns["sessions"] else "rowid"
        return self._read("sessions", f"ORDER BY {order}")

    def rows(self, session: str) -> list[dict[str, Any]]:
        """The rows of a session in the order in which they were written, without those that were taken back or only overheard."""
        columns = self._columns["messages"]
        kept = "active IS NULL OR active = 1" + (" OR compacted = 1" if "compacted" in columns else "") if "active" in columns else "1"
        heard = "observed IS NULL OR observed = 0" if "observed" in columns else "1"
        rows = self._read("messages", f"WHERE session_id = ? AND ({kept}) AND ({heard}) ORDER BY rowid", session)
        return [{**row, "content": _content(row["content"])} for row in rows]

    def _read(self, table: str, rest: str, *values: str) -> list[dict[str, Any]]:
        names = _TABLES[table]
        chosen = ", ".join(f'"{name}"' if name in self._columns[table] else "NULL" for name in names)
        found = self._connection.execute(f'SELECT {chosen} FROM "{table}" {rest}', values).fetchall()
        return [dict(zip(names, row, strict=True)) for row in found]


@contextmanager
def open_history(path: Path) -> Iterator[HistoryFile]:
    """Open ``path`` for reading.  Raises :class:`InvalidInput`, here and from any read, where it is damaged or something else."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_WAIT)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            yield HistoryFile(connection, path)
    except sqlite3.Error as error:
        raise InvalidInput("PATH", f"{path}: cannot be read ({error})") from None


def _content(value: object) -> object:
    if isinstance(value, str) and value.startswith(_AS_JSON):
        try:
            return json.loads(value[len(_AS_JSON) :])
        except (ValueError, RecursionError):
            return ""
    return value
