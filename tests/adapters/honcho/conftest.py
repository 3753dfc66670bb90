"""A Honcho server of each test's own, and backends that are open on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memoryd.core import (
    BackendContext,
    Cursor,
    Deletion,
    Edit,
    Entry,
    Event,
    Forget,
    MemoryWrite,
    Scope,
    Turn,
    new_event_id,
)
from memoryd.redact import load_redactor
from memoryd.testing.honcho import HonchoServer
from memoryd_honcho import HonchoBackend, create

SPEED = {"timeout": 5.0, "read_timeout": 5.0, "settle": 0.05}


@pytest.fixture
def honcho() -> Iterator[HonchoServer]:
    with HonchoServer() as server:
        yield server


def context(url: str, *, key: bytes = b"k" * 32, **table: Any) -> BackendContext:
    config = {"url": url, **SPEED, **table}
    return BackendContext("honcho", Path("/nowhere"), "default", "instance", key, config, redactor=load_redactor)


@asynccontextmanager
async def opened(url: str, **table: Any) -> AsyncIterator[HonchoBackend]:
    """A backend that is open, and closed after the block."""
    backend = create(context(url, **table))
    await backend.open()
    try:
        yield backend
    finally:
        await backend.aclose()


@pytest.fixture
async def backend(honcho: HonchoServer) -> AsyncIterator[HonchoBackend]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(opened(honcho.url))


class Log:
    """A log in memory: gives events their places."""

    def __init__(self, epoch: str = "e1") -> None:
        self.epoch = epoch
        self.seq = 0

    def add(self, event: Event) -> Entry:
        self.seq += 1
        return Entry(Cursor(self.epoch, self.seq), event)

    def turn(self, user: str, assistant: str = "", *, of: str = "ann", session: str | None = "s1", at: int | None = None, **scope: str) -> Entry:
        moment = 1_700_000_000_000_000 + self.seq if at is None else at
        return self.add(Turn(new_event_id(), Scope(user=of, session=session, **scope), moment, user, assistant))

    def write(self, key: str, value: str, *, of: str = "ann", at: int | None = None, metadata: dict[str, Any] | None = None) -> Entry:
        moment = 1_700_000_000_000_000 + self.seq if at is None else at
        return self.add(MemoryWrite(new_event_id(), Scope(user=of), moment, key, value, metadata=metadata or {}))

    def delete(self, key: str, *, of: str = "ann") -> Entry:
        return self.add(Deletion(new_event_id(), Scope(user=of), 1_700_000_000_000_000, key))

    def edit(self, entry: Entry, *, user: str | None = None, assistant: str | None = None, of: str = "ann") -> Entry:
        return self.add(Edit(new_event_id(), Scope(user=of), 1_700_000_000_000_000, entry.event.event_id, user, assistant))

    def forget(self, *entries: Entry, sessions: tuple[str, ...] = (), of: str = "ann") -> Entry:
        targets = tuple(sorted(entry.seq for entry in entries))
        return self.add(Forget(new_event_id(), Scope(user=of), 1_700_000_000_000_000, targets, sessions))


@pytest.fixture
def log() -> Log:
    return Log()
