"""What a check works with: a backend of its own in a home of its own, and events with their places in a log."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs
import trio

from memoryd.core import (
    Backend,
    BackendContext,
    BackendFactory,
    Capability,
    Cursor,
    Deletion,
    Entry,
    Event,
    Forget,
    MemoryWrite,
    Outcome,
    Query,
    Scope,
    Turn,
    new_event_id,
)
from memoryd.redact import load_redactor
from memoryd.store import open_profile

__all__ = ["Bench", "Subject"]

T = TypeVar("T")
START = 1_767_225_600_000_000  # 2026-01-01, in microseconds
MINUTE = 60_000_000
PATIENCE = 10.0  # seconds a backend with an index of its own may take until a reader sees a write


@attrs.frozen(slots=True)
class Subject:
    """A backend to be put through the contract.

    ``create`` is what its entry point names, ``config`` its configuration table.  ``faults`` maps a class of error (``transient``,
    ``permanent``, ``ambiguous``) to a context manager during which calls meet it; a class that the backend cannot have is left out.
    """

    name: str
    create: BackendFactory
    config: Mapping[str, Any] = attrs.field(factory=dict)
    faults: Mapping[str, Callable[[Backend], AbstractContextManager[object]]] = attrs.field(factory=dict)


class Bench:
    """One check's place: ``backend`` is open, ``tell`` gives it events in log order."""

    def __init__(self, subject: Subject, directory: Path, profile: str = "contract") -> None:
        self.subject = subject
        self.directory = directory
        self.epoch = secrets.token_hex(8)
        self.seq = 0
        store = open_profile(directory, profile)
        self._context = BackendContext(
            subject.name, store.directory, store.name, store.instance, store.key, subject.config, redactor=load_redactor
        )
        self.backend: Backend = subject.create(self._context)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Backend]:
        """The backend, opened, and closed at the end."""
        await self.backend.open()
        try:
            yield self.backend
        finally:
            with trio.CancelScope(shield=True):
                await self.backend.aclose()

    def reborn(self) -> Bench:
        """The same profile in a new instance of the backend, as after a restart; the log goes on where it is."""
        again = Bench.__new__(Bench)
        again.subject, again.directory, again._context = self.subject, self.directory, self._context
        again.epoch, again.seq = self.epoch, self.seq
        again.backend = self.subject.create(self._context)
        return again

    def can(self, capability: Capability) -> bool:
        """Whether the backend says that it has ``capability``; what it has not must answer so, never raise."""
        return capability in self.backend.info.capabilities

    # -- events -----------------------------------------------------------------------------------------------------------------

    def entry(self, event: Event, seq: int | None = None) -> Entry:
        """``event`` at the next place of the log, or at ``seq``."""
        if seq is None:
            self.seq += 1
            seq = self.seq
        return Entry(Cursor(self.epoch, seq), event)

    def turn(self, user: str, assistant: str = "Noted.", *, of: str = "ada", session: str = "s1", at: int | None = None) -> Turn:
        moment = START + (self.seq + 1) * MINUTE if at is None else at
        return Turn(new_event_id(), Scope(user=of, session=session), moment, user, assistant)

    def write(self, key: str, value: str, *, of: str = "ada", type: str = "preference", **metadata: Any) -> MemoryWrite:
        at = START + (self.seq + 1) * MINUTE
        return MemoryWrite(new_event_id(), Scope(user=of), at, key, value, type, metadata)

    def deletion(self, key: str, *, of: str = "ada") -> Deletion:
        return Deletion(new_event_id(), Scope(user=of), START + (self.seq + 1) * MINUTE, key)

    def forgetting(self, *seqs: int, of: str = "ada") -> Forget:
        return Forget(new_event_id(), Scope(user=of), START + (self.seq + 1) * MINUTE, seqs)

    async def tell(self, *events: Event) -> list[Entry]:
        """Apply ``events`` as the next ones of the log; every outcome must be *ok*."""
        entries = [self.entry(event) for event in events]
        outcomes = await self.backend.apply(entries)
        assert [outcome.kind for outcome in outcomes] == ["ok"] * len(entries), f"outcomes: {outcomes}"
        return entries

    async def give(self, *entries: Entry) -> list[Outcome]:
        """Apply exactly these entries."""
        return list(await self.backend.apply(entries))

    # -- readers ----------------------------------------------------------------------------------------------------------------

    async def found(self, text: str, *, of: str = "ada", limit: int = 50, session: str | None = None) -> list[str]:
        """The texts of the turns that recall finds for ``text``."""
        hits = await self.backend.recall(Query(of, text, limit, session=session))
        return [hit.text for hit in hits if hit.kind == "turn"]

    async def eventually(self, look: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> T:
        """What ``look`` gives once it is ``wanted``, or as it is when patience ends: a remote index may lag behind."""
        seen = await look()
        if not self.backend.info.is_cloud:
            return seen
        with trio.move_on_after(PATIENCE):
            while not wanted(seen):
                await trio.sleep(0.05)
                seen = await look()
        return seen
