"""The backend port: what a place where memory is kept has to do.  ``memoryd.testing`` has its suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import attrs

from memoryd.core._events import Cursor, Entry
from memoryd.core._query import Query
from memoryd.core._redact import RedactorFactory
from memoryd.core._value import Value
from memoryd.core._values import Hit, Memory, MemoryVersion

__all__ = [
    "Availability", "Backend", "BackendContext", "BackendFactory", "BackendInfo", "Capability", "Health", "HistoryBackend", "Outcome",
    "OutcomeKind",
]

Capability = Literal["turns", "memories", "recall", "query", "list", "delete", "history", "forget"]
OutcomeKind = Literal["ok", "transient", "permanent", "ambiguous", "gap"]


@attrs.frozen(slots=True, eq=False, repr=False)
class BackendInfo(Value):
    """What a backend says of itself.  ``capabilities`` are asserted by the suite: what is missing must answer so, never raise."""

    name: str
    label: str
    is_cloud: bool
    data_location: str
    requires_api_key: bool
    capabilities: frozenset[Capability]


@attrs.frozen(slots=True, eq=False, repr=False)
class Availability(Value):
    """Whether a backend could be opened, from configuration and installed packages alone; ``reason`` says what to install or set."""

    available: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.available


@attrs.frozen(slots=True, eq=False, repr=False)
class Health(Value):
    """The result of a real read and write.  ``warning`` says what somebody should know although both succeeded."""

    ok: bool
    detail: str = ""
    warning: str = ""

    def __bool__(self) -> bool:
        return self.ok


@attrs.frozen(slots=True, eq=False, repr=False)
class Outcome(Value):
    """What became of one event.  *ok*; *transient* (retry in order); *permanent* (dead letter, go on); *ambiguous* (look before
    sending again); *gap* (an own cursor is behind this event: send from there)."""

    kind: OutcomeKind
    reason: str = ""
    retry_after: float | None = None


OK = Outcome("ok")


@attrs.frozen(slots=True, eq=False, repr=False)
class BackendContext(Value):
    """What a backend is built from: the profile's directory and key, and the backend's own configuration table.

    ``redactor`` builds what takes secrets out of texts; a backend off the machine sends nothing without it.
    """

    name: str
    directory: Path
    profile: str
    instance: str
    key: bytes = attrs.field(repr=False)
    config: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    vfs: str | None = None
    redactor: RedactorFactory | None = attrs.field(default=None, repr=False)


class Backend(Protocol):
    """One writer task calls ``apply``; the reading methods may run concurrently with it and with each other."""

    @property
    def info(self) -> BackendInfo: ...
    def is_available(self) -> Availability:
        """Configuration and installed packages only: no network, no heavy import."""
        ...

    async def open(self) -> None: ...
    async def health(self) -> Health:
        """A real read and write."""
        ...

    async def position(self) -> Cursor | None:
        """The backend's own cursor, or None where the log keeps it."""
        ...

    async def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        """Apply in order, idempotent by event id; one outcome an entry.  A raised BackendError concerns the whole batch."""
        ...

    async def recall(self, query: Query) -> list[Hit]: ...
    async def retrieve(self, user_id: str, key: str) -> Memory | None: ...
    async def query(self, user_id: str, text: str, limit: int = 10) -> list[Memory]:
        """Substring of key or value, case-insensitive, ``%``, ``_`` and ``*`` literal, newest first; an empty text finds nothing."""
        ...

    async def list_keys(self, user_id: str) -> list[str]:
        """Newest first."""
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class HistoryBackend(Backend, Protocol):
    """What only the local backend does: it serves history, ``as_of``, listing, edits and forget for every primary."""

    async def list_memories(self, user_id: str, *, limit: int | None = None, offset: int = 0) -> list[Memory]: ...
    async def history(self, user_id: str, key: str, *, as_of: datetime | None = None) -> list[MemoryVersion]:
        """Every value the key had, newest first; with ``as_of`` the one that was valid then."""
        ...

    async def find(self, user_id: str, id: str) -> Hit | None:
        """The turn or memory with that id, or None."""
        ...

    async def erase_traces(self) -> None:
        """After Forget events were applied: merge the full-text index and truncate the WAL, so that no file holds the words."""
        ...

    async def counts(self) -> Mapping[str, int]:
        """Rows by table (``turns``, ``memories``, ``sessions``), for status."""
        ...

    async def rebuild(self) -> None:
        """Drop the projection and its cursor, so that it is made anew from the log."""
        ...


class BackendFactory(Protocol):
    """What an entry point in the group ``memoryd.backends`` names."""

    def __call__(self, context: BackendContext) -> Backend: ...
