"""The naive peer: what people write first.  One table, a connection a call, SQLite's defaults, LIKE search."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path


class NaiveMemory:
    """A key-value memory on the standard library's sqlite3, with its default journal and synchronous settings."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._connect() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS memory (user TEXT, key TEXT, value TEXT, at REAL, PRIMARY KEY (user, key))"
            )

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path)

    def store(self, user: str, key: str, value: str) -> None:
        connection = self._connect()
        with connection:
            connection.execute("INSERT OR REPLACE INTO memory VALUES (?, ?, ?, ?)", (user, key, value, time.time()))
        connection.close()

    def search(self, user: str, text: str, limit: int = 10) -> list[tuple[str, str]]:
        connection = self._connect()
        rows = connection.execute(
            "SELECT key, value FROM memory WHERE user = ? AND value LIKE ? ORDER BY at DESC LIMIT ?",
            (user, f"%{text}%", limit),
        ).fetchall()
        connection.close()
        return rows
