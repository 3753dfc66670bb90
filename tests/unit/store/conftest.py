from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.store import Connection, Options, ProfileStore, Schema, connect, open_profile, prepare
from memoryd.testing import FaultyVFS

NOTES = Schema("notes", ("CREATE TABLE note (id INTEGER PRIMARY KEY, text BLOB)",))


@pytest.fixture
def profile(tmp_path: Path) -> ProfileStore:
    return open_profile(tmp_path / "home", "default")


@pytest.fixture
def store(profile: ProfileStore) -> Path:
    """A prepared store file with one table, ``note(id, text)``."""
    path = profile.directory / "notes.db"
    prepare(path, NOTES, profile)
    return path


@pytest.fixture
def connection(store: Path) -> Iterator[Connection]:
    opened = connect(store, Options(autocheckpoint=0))
    yield opened
    opened.close()


@pytest.fixture
def disk() -> Iterator[FaultyVFS]:
    with FaultyVFS("faulty") as faulty:
        yield faulty
