"""A local backend on a real file, and short words for what a log would send it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
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
    Hit,
    MemoryWrite,
    Outcome,
    Query,
    Scope,
    Turn,
    new_event_id,
)
from memoryd.store import open_profile
from memoryd_local import LocalBackend, create

SECOND = 1_000_000


def backend_in(home: Path, **config: Any) -> LocalBackend:
    profile = open_profile(home, "work")
    return create(BackendContext("local", profile.directory, profile.name, profile.instance, profile.key, config))


class Log:
    """Numbers events as a log does; times are a second apart unless given."""

    def __init__(self, epoch: str = "first") -> None:
        self.epoch = epoch
        self.entries: list[Entry] = []

    def add(self, event: Event) -> Entry:
        entry = Entry(Cursor(self.epoch, len(self.entries) + 1), event)
        self.entries.append(entry)
        return entry

    def again(self, epoch: str) -> Log:
        """The same events in the same order under another epoch."""
        log = Log(epoch)
        for entry in self.entries:
            log.add(entry.event)
        return log

    @property
    def now(self) -> int:
        return (len(self.entries) + 1) * SECOND


class Local:
    """A backend with a log of its own: each call adds an event and applies it."""

    def __init__(self, backend: LocalBackend, path: Path) -> None:
        self.backend = backend
        self.path = path
        self.log = Log()

    async def turn(self, said: str, answered: str = "", *, at: int | None = None, turn_id: str | None = None, **scope: Any) -> Entry:
        event = Turn(new_event_id(), _scope(scope), self.log.now if at is None else at, said, answered, turn_id)
        return await self.apply(event)

    async def write(
        self, key: str, value: str, *, at: int | None = None, metadata: Mapping[str, Any] | None = None, **scope: Any
    ) -> Entry:
        given = dict(metadata or {})
        kind = given.get("type", "preference")
        when = self.log.now if at is None else at
        return await self.apply(MemoryWrite(new_event_id(), _scope(scope), when, key, value, kind, given))

    async def delete(self, key: str, **scope: Any) -> Entry:
        return await self.apply(Deletion(new_event_id(), _scope(scope), self.log.now, key))

    async def edit(self, target: Entry, user: str | None = None, assistant: str | None = None) -> Entry:
        event_id = target.event.event_id
        return await self.apply(Edit(new_event_id(), _scope({}), self.log.now, event_id, user, assistant))

    async def forget(self, *targets: Entry, sessions: tuple[str, ...] = (), **scope: Any) -> Entry:
        seqs = tuple(sorted(entry.seq for entry in targets))
        return await self.apply(Forget(new_event_id(), _scope(scope), self.log.now, seqs, sessions))

    async def apply(self, event: Event) -> Entry:
        entry = self.log.add(event)
        assert await self.backend.apply([entry]) == [Outcome("ok")]
        return entry

    async def recall(self, text: str, user: str = "ada", **options: Any) -> list[Hit]:
        return await self.backend.recall(Query(user, text, **options))

    async def found(self, text: str, **options: Any) -> list[str]:
        """The texts that a query finds, best first."""
        return [hit.text for hit in await self.recall(text, **options)]


def _scope(given: Mapping[str, Any]) -> Scope:
    return Scope(**{"user": "ada", "session": "s1", **given})


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Local]:
    backend = backend_in(tmp_path)
    await backend.open()
    yield Local(backend, tmp_path)
    await backend.aclose()
