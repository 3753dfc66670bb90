"""What Hermes remembered before: read from its files, with its times, once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.blocking import Memory
from memoryd.core import MemoryWrite, scope, to_micros
from memoryd.errors import InvalidInput
from memoryd_hermes import source
from memoryd_hermes._import import _micros

WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
AT = to_micros(WHEN)


def database(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def said(found: list[MemoryWrite]) -> list[tuple[str | None, str, str, int]]:
    return [(event.scope.user, event.key, event.value, event.at) for event in found]


def test_keyed_memories_keep_key_user_and_time(tmp_path: Path) -> None:
    path = database(
        tmp_path / "memory.db",
        "CREATE TABLE memories (id INTEGER PRIMARY KEY, user_id TEXT, key TEXT, value TEXT, type TEXT, created_at TEXT, updated_at TEXT)",
        "INSERT INTO memories VALUES (1, 'ada', 'city', 'Oslo', 'fact', '2026-03-04 05:06:07', '2026-04-01 00:00:00')",
        f"INSERT INTO memories VALUES (2, 'ada', 'city', 'Turin', NULL, '{WHEN.timestamp() + 60}', NULL)",
        "INSERT INTO memories VALUES (3, NULL, 'empty', '  ', NULL, NULL, NULL)",
        "INSERT INTO memories VALUES (4, 'ada', 'city', 'Oslo', 'fact', '2026-03-05T05:06:07Z', NULL)",
    )
    found = list(source.events(path))
    assert said(found) == [
        ("ada", "city", "Oslo", AT), ("ada", "city", "Turin", AT + 60_000_000), ("ada", "city", "Oslo", AT + 86_400_000_000),
    ]  # fmt: skip
    assert [event.type for event in found] == ["fact", "memory", "fact"]
    assert len({event.event_id for event in found}) == 3


def test_the_short_table_and_rows_without_a_key(tmp_path: Path) -> None:
    path = database(
        tmp_path / "memory.db",
        "CREATE TABLE m (id TEXT, content TEXT, ts REAL)",
        f"INSERT INTO m VALUES ('b', 'likes tea', {WHEN.timestamp() + 1})",
        f"INSERT INTO m VALUES ('a', 'likes tea', {WHEN.timestamp()})",
        f"INSERT INTO m VALUES ('c', 'works at night', {AT // 1000})",
    )
    found = list(source.events(path))
    assert [(event.value, event.at) for event in found] == [("likes tea", AT), ("works at night", AT), ("likes tea", AT + 1_000_000)]
    assert found[0].event_id == found[2].event_id != found[1].event_id
    assert found[0].key == found[2].key


def test_entries_of_the_two_files(tmp_path: Path) -> None:
    (tmp_path / "memories").mkdir()
    user, memory = tmp_path / "memories/USER.md", tmp_path / "memories/MEMORY.md"
    user.write_text("Name: Ada\n§\nWrites § in notes\n", "utf-8")
    memory.write_bytes("﻿Server is kestrel\r\nport 22\r\n§\r\n\r\n§\r\nServer is kestrel".encode())
    for file in (user, memory):
        os.utime(file, ns=(AT * 1000, AT * 1000))
    found = list(source.events(tmp_path))
    assert [(event.type, event.value) for event in found] == [
        ("user", "Name: Ada"), ("user", "Writes § in notes"), ("memory", "Server is kestrel\nport 22"), ("memory", "Server is kestrel"),
    ]  # fmt: skip
    assert {event.at for event in found} == {AT}
    assert [event.event_id for event in source.events(tmp_path)] == [event.event_id for event in found]
    assert list(map(repr, source.events(user))) == list(map(repr, found[:2]))


def test_a_home_has_all_three(tmp_path: Path) -> None:
    database(tmp_path / "memory.db", "CREATE TABLE m (c TEXT)", "INSERT INTO m VALUES ('from the database')")
    (tmp_path / "MEMORY.md").write_text("from the file")
    assert [event.value for event in source.events(tmp_path)] == ["from the database", "from the file"]


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0 and then nothing", b"plain text\n" * 100])
def test_what_is_no_database_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="memory.db"):
        list(source.events(path))
    assert path.read_bytes() == content


def test_a_place_with_nothing_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InvalidInput, match="there is no memory.db"):
            list(source.events(path))
    with pytest.raises(InvalidInput, match="memories or m"):
        list(source.events(database(tmp_path / "other.db", "CREATE TABLE facts (content TEXT)")))


@given(st.none() | st.text(max_size=20) | st.floats() | st.integers() | st.binary(max_size=8))
def test_any_time_is_a_time(value: object) -> None:
    assert _micros(value, 7) >= 0


def test_the_command_takes_in_each_memory_once(tmp_path: Path) -> None:
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories/USER.md").write_text("Name: Ada\n§\nLives in Turin")
    database(
        tmp_path / "memory.db",
        "CREATE TABLE memories (key TEXT, value TEXT, created_at TEXT)",
        "INSERT INTO memories VALUES ('city', 'Oslo', '2026-03-04T05:06:07Z')",
        "INSERT INTO memories VALUES ('city', 'Turin', '2026-03-05T05:06:07Z')",
    )
    command = [sys.executable, "-m", "memoryd", "import", "hermes-memory", str(tmp_path)]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    with Memory() as memory, scope(user="default"):
        assert len(memory.list_memories()) == 3
        city = memory.retrieve("city")
        assert city is not None and city.value == "Turin"
        assert [version.value for version in memory.history("city")] == ["Turin", "Oslo"]
        assert memory.history("city")[-1].valid_from == WHEN
        assert memory.recall("where does Ada live?")
