from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.checkpoint import Archive
from memoryd.core import Receipt
from memoryd.store import ProfileStore, open_profile

Upsert = Callable[..., Receipt]


@pytest.fixture
def profile(tmp_path: Path) -> ProfileStore:
    return open_profile(tmp_path, "default")


@pytest.fixture
def archive(profile: ProfileStore) -> Iterator[Archive]:
    with Archive.open(profile) as archive:
        yield archive


@pytest.fixture
def upsert(archive: Archive) -> Upsert:
    """``upsert(rows, session="s", at=..., seconds=20.0, ...)`` into the archive."""

    def call(rows: Any, *, user: str = "u", session: str = "s", at: int = 1_000_000, seconds: float = 20.0, **more: Any) -> Receipt:
        names = {"host": "test", "trigger": "manual", **more}
        return archive.upsert(rows, user=user, session=session, at=at, deadline=time.monotonic() + seconds, **names)

    return call


@pytest.fixture
def talk() -> Callable[..., list[dict[str, Any]]]:
    """``talk(6)``: three turns, each row with words of its own."""

    def make(count: int, size: int = 20, tag: str = "w") -> list[dict[str, Any]]:
        roles = ("user", "assistant")
        return [{"role": roles[n % 2], "content": f"{tag}{n:06d} " * (size // 8 + 1), "n": n} for n in range(count)]

    return make
