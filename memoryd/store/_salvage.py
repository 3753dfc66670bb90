"""What can still be read of a damaged store, row by row, into a sound one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import attrs

from memoryd.core import Value
from memoryd.store._connection import store_uri
from memoryd.store._errors import os_errors, raise_mapped

__all__ = ["Salvaged", "salvage"]

LAST = (1 << 63) - 1
MAGIC = b"SQLite format 3\0"
PAGE_SIZE = 4096
SIZE_AT = slice(28, 32)
"""Where a file's header says how many pages it has."""


@attrs.frozen(slots=True, eq=False, repr=False)
class Salvaged(Value):
    """Rows taken over, and how many places in the file could not be read (each a run of rows of unknown length)."""

    rows: int
    gaps: int


def salvage(damaged: Path, sound: Path, skip: frozenset[str] = frozenset()) -> Salvaged:
    """Copy every readable row of the tables of ``sound``, an empty store of the same kind, from ``damaged``; tables of ``skip`` stay.

    Nobody has either open.  ``damaged`` is changed: give a copy.  SQLite takes in its write-ahead log, and it may get a new
    first page.
    """
    with os_errors(damaged):
        _lend_header(damaged, sound)
    target = apsw.Connection(store_uri(sound), apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    source = apsw.Connection(store_uri(damaged), apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    try:
        tables = [name for name in _tables(target) if name not in skip]
        with target:
            parts = [_Table(source, target, name).copy() for name in tables]
        return Salvaged(sum(part.rows for part in parts), sum(part.gaps for part in parts))
    except apsw.Error as error:  # what is wrong with ``damaged`` is a gap: this is about the sound one
        raise_mapped(error, sound, target.system_errno)
    finally:
        source.close(True)
        target.close(True)


def _lend_header(damaged: Path, sound: Path) -> None:
    """A file whose first page is gone gets that of its kind: stores are made by the same steps, so that their tables begin at the same
    pages."""
    with open(damaged, "r+b") as file:
        if file.read(len(MAGIC)) == MAGIC:
            return
        size = os.fstat(file.fileno()).st_size
        page = bytearray(sound.read_bytes()[:PAGE_SIZE])
        page[SIZE_AT] = (size // PAGE_SIZE).to_bytes(4, "big")
        file.seek(0)
        file.write(page)


def _tables(connection: apsw.Connection) -> list[str]:
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'store_identity' ORDER BY rowid"
    return [str(row[0]) for row in connection.execute(sql)]


class _Table:
    """One table: by rowid where it has one, so that what follows a damaged page is found; else in its own order."""

    def __init__(self, source: apsw.Connection, target: apsw.Connection, name: str) -> None:
        self._source = source
        columns = [str(row[0]) for row in target.execute("SELECT name FROM pragma_table_info(?)", (name,))]
        names = ", ".join(f'"{column}"' for column in columns)
        self._has_rowid = not target.execute("SELECT wr FROM pragma_table_list(?)", (name,)).fetchall()[0][0]
        order = "rowid > ? AND rowid <= ? ORDER BY rowid" if self._has_rowid else "? < ?"
        key = "rowid, " if self._has_rowid else "0, "
        self._select = f'SELECT {key}{names} FROM "{name}" NOT INDEXED WHERE {order}'
        marks = ", ".join("?" * len(columns))
        self._insert = f'INSERT OR IGNORE INTO "{name}" ({names}) VALUES ({marks})'
        self._target = target
        self._rows = self._gaps = 0

    def copy(self) -> Salvaged:
        after = -1
        while True:
            for row in self._read(after):
                after = row[0]
                self._keep(row[1:])
            if self._failed is None:
                break
            self._gaps += 1
            beyond = self._first_beyond(after) if self._has_rowid else None
            if beyond is None:
                break
            after = beyond
        return Salvaged(self._rows, self._gaps)

    def _keep(self, row: tuple[Any, ...]) -> None:
        with suppress(apsw.ConstraintError, apsw.MismatchError):  # a row that was never written so
            self._target.execute(self._insert, row)
            self._rows += self._target.changes()

    def _read(self, after: int) -> Iterator[tuple[Any, ...]]:
        """Rows after that rowid until one cannot be read: then ``_failed`` says why."""
        self._failed: apsw.Error | None = None
        try:
            yield from self._source.execute(self._select, (after, LAST))
        except apsw.Error as error:
            self._failed = error

    def _first_beyond(self, after: int) -> int | None:
        """A place from which reading works again, as near after ``after`` as doubling and halving find it; None where there is none."""
        step, failed = 1, after
        while after + step < LAST // 2:
            if self._works(after + step):
                return self._nearest(failed, after + step)
            failed, step = after + step, step * 2
        return None

    def _nearest(self, fails: int, works: int) -> int:
        while works - fails > 1:
            middle = (fails + works) // 2
            fails, works = (fails, middle) if self._works(middle) else (middle, works)
        return works

    def _works(self, after: int) -> bool:
        try:
            self._source.execute(f"{self._select} LIMIT 1", (after, LAST)).fetchall()
        except apsw.Error:
            return False
        return True
