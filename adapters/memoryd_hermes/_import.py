"""``memoryd import hermes-memory``: what Hermes remembered before memoryd, as memories with their times.

A ``memory.db`` has a table ``memories`` or ``m`` whose columns differ between versions, so they are found by name.  MEMORY.md and USER.md
have entries between lines of ``§`` and no times: the file's own is taken.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from memoryd.core import MemoryWrite, Scope, to_micros
from memoryd.errors import InvalidInput
from memoryd.hosts import import_id

__all__ = ["source"]

_NAME = "hermes-memory"
_FILES = {"USER.md": "user", "MEMORY.md": "memory"}
_TABLES = ("memories", "m")
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "text": ("value", "content", "text", "memory", "fact", "body", "v", "c"),
    "key": ("key", "mem_key", "name", "k"),
    "user": ("user_id", "user", "uid", "u"),
    "at": ("created_at", "created", "timestamp", "time", "ts", "updated_at", "t"),
    "type": ("type", "category", "target", "kind"),
}
_BETWEEN = "\n§\n"


class HermesMemory:
    """The object behind the entry point ``hermes-memory`` of ``memoryd.sources``."""

    help = "memory.db, MEMORY.md and USER.md of Hermes: a file, its folder, or a Hermes home"

    def events(self, path: Path) -> Iterator[MemoryWrite]:
        """Every memory once, the oldest of a file first.  Raises :class:`InvalidInput` where nothing of the kind is there."""
        for file in _files(path):
            yield from _entries(file, _FILES[file.name]) if file.name in _FILES else _rows(file)


source = HermesMemory()


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    places = [folder / name for folder in (path, path / "memories") for name in ("memory.db", *_FILES)]
    found = [place for place in places if place.is_file()]
    if not found:
        raise InvalidInput("PATH", f"{path}: there is no memory.db, MEMORY.md or USER.md")
    return found


def _memory(user: str | None, key: str | None, text: str, kind: str, at: int, moment: str = "") -> MemoryWrite:
    """A memory without a key is named after what it says, so that the same words are one memory.

    ``moment`` is the time as the record has it: a key that went back to an earlier value did so later.
    """
    name = key or f"hermes:{kind}:{hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
    identity = import_id(_NAME, user or "", name, text, moment if key else "")
    return MemoryWrite(identity, Scope(user=user), at, name, text, kind, {"source": "hermes"})


# -- MEMORY.md, USER.md ------------------------------------------------------------------------------------------------------


def _entries(path: Path, kind: str) -> Iterator[MemoryWrite]:
    try:
        at, text = path.stat().st_mtime_ns // 1000, path.read_bytes().decode("utf-8-sig", "replace")
    except OSError as error:
        raise InvalidInput("PATH", f"{path}: {error.strerror}") from None
    for entry in text.replace("\r\n", "\n").split(_BETWEEN):
        if said := entry.strip():
            yield _memory(None, None, said, kind, at)


# -- memory.db ---------------------------------------------------------------------------------------------------------------


@attrs.frozen(slots=True)
class _Table:
    """A table, and which of its columns stands for what."""

    name: str
    columns: Mapping[str, str]

    @property
    def query(self) -> str:
        chosen = ", ".join(f'"{self.columns[part]}"' if part in self.columns else "NULL" for part in _COLUMNS)
        return f'SELECT {chosen} FROM "{self.name}" ORDER BY rowid'


def _rows(path: Path) -> Iterator[MemoryWrite]:
    fallback = path.stat().st_mtime_ns // 1000
    found = [
        _memory(_word(user), _word(key), text, _word(kind) or "memory", _micros(at, fallback), str(at))
        for text, key, user, at, kind in _read(path)
        if isinstance(text, str) and text.strip()
    ]
    yield from sorted(found, key=lambda event: event.at)


def _read(path: Path) -> list[tuple[Any, ...]]:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            return connection.execute(_table(connection, path).query).fetchall()
    except sqlite3.Error as error:
        raise InvalidInput("PATH", f"{path}: cannot be read ({error})") from None


def _table(connection: sqlite3.Connection, path: Path) -> _Table:
    for name in _TABLES:
        there = {row[1].lower(): row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')}
        columns = {part: there[word] for part, words in _COLUMNS.items() for word in reversed(words) if word in there}
        if "text" in columns:
            return _Table(name, columns)
    raise InvalidInput("PATH", f"{path}: has no table {' or '.join(_TABLES)} with a column for the text")


def _word(value: object) -> str | None:
    text = value.strip()[:500] if isinstance(value, str) else ""
    return text or None


def _micros(value: Any, fallback: int) -> int:
    """A time in seconds, milliseconds or microseconds since the epoch, or in ISO 8601 (UTC where it says no zone)."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return _parsed(value, fallback)
    for limit, factor in ((1e11, 1e6), (1e14, 1e3), (1e17, 1)):
        if 0 < number < limit:
            return int(number * factor)
    return fallback


def _parsed(value: Any, fallback: int) -> int:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return fallback
    return to_micros(found if found.tzinfo else found.replace(tzinfo=UTC))
