"""What ``status()`` says.  Nothing here holds text of a turn, a memory or a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs

from memoryd.core._value import Value

__all__ = ["BackendStatus", "GateStatus", "LogStatus", "StageStatus", "State", "Status", "StoreStatus", "TaskStatus", "worst_state"]

State = Literal["ok", "degraded", "broken", "off"]
_WORST: tuple[State, ...] = ("broken", "degraded", "ok", "off")


def worst_state(states: Iterable[State]) -> State:
    """The worst of them; *ok* where there are none, *off* only where all are."""
    seen = set(states)
    return next((state for state in _WORST if state in seen), "ok")


@attrs.frozen(slots=True, eq=False, repr=False)
class LogStatus(Value):
    """The event log.  ``power_safe``: everything up to ``synced`` survives power loss, and barriers succeed; ``held`` and ``refused``
    count events (held now, refused since open), ``quarantined`` spool files that were damaged, ``unreadable`` events that are."""

    path: str
    state: State
    head: int = 0
    synced: int = 0
    bytes: int = 0
    wal_bytes: int = 0
    power_safe: bool = True
    held: int = 0
    held_bytes: int = 0
    refused: int = 0
    erasing: int = 0
    quarantined: int = 0
    unreadable: int = 0
    last_error: str = ""


@attrs.frozen(slots=True, eq=False, repr=False)
class BackendStatus(Value):
    """One backend.  ``backlog`` events wait for it, the oldest for ``oldest_age`` seconds; ``degraded_since`` and ``recovered_at`` are
    microseconds since the epoch; ``owner`` is the pid that delivers to a remote backend, where one does, and ``owner_stopped`` True where
    that process gives no sign of life while it keeps the lock."""

    name: str
    label: str
    role: Literal["primary", "mirror", "history"]
    state: State
    cursor: int = 0
    backlog: int = 0
    oldest_age: float = 0.0
    degraded_since: int | None = None
    recovered_at: int | None = None
    recovered: int = 0
    last_error: str = ""
    dead: int = 0
    owner: int | None = None
    owner_stopped: bool = False
    rows: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen(slots=True, eq=False, repr=False)
class GateStatus(Value):
    """The gate of this profile.  ``mode`` is what a checkpoint would meet now and ``decided_by`` who says so; ``refusals`` counts those
    in a row over all sessions; ``released`` names sessions with a release; ``receipts`` are its latest decisions, oldest first.
    ``last_error`` is the class of what stands against reading the archive; ``state`` is *degraded* also while a session is refused and
    not archived since."""

    mode: str
    path: str
    decided_by: str = "configuration"
    last_verdict: str = ""
    fallback: str = ""
    refusals: int = 0
    released: tuple[str, ...] = ()
    bytes: int = 0
    warning: str = ""
    receipts: tuple[Mapping[str, Any], ...] = ()
    state: State = "ok"
    last_error: str = ""


@attrs.frozen(slots=True, eq=False, repr=False)
class TaskStatus(Value):
    """One supervised child of the nursery: how often it crashed, and with which class of error last."""

    name: str
    state: Literal["running", "restarting", "failed", "ended"]
    crashes: int = 0
    last_error: str = ""


@attrs.frozen(slots=True, eq=False, repr=False)
class StoreStatus(Value):
    """One store file: sizes in bytes, ``last_write`` in microseconds since the epoch.  ``readers`` are other processes that read it at
    this instant: one that goes on reading keeps the write-ahead log from being folded back."""

    name: Literal["log", "memory", "archive"]
    path: str
    bytes: int = 0
    wal_bytes: int = 0
    last_write: int | None = None
    readers: tuple[int, ...] = ()


@attrs.frozen(slots=True, eq=False, repr=False)
class StageStatus(Value):
    """How long one stage takes: the milliseconds that half and 95 % of its latest 512 calls took at most.  ``calls`` and ``total_ms``
    are sums since open."""

    name: str
    calls: int = 0
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    total_ms: float = 0.0


@attrs.frozen(slots=True, eq=False, repr=False)
class Status(Value):
    """The whole runtime; ``state`` is the worst of its parts.

    ``queues`` counts what waits by name: calls for a thread (``sync``, ``read``, ``gate``, ``archive``), ``held`` events, ``prefetch``
    questions.  ``pid``, ``version`` and ``opened_at`` (microseconds since the epoch) are of the process that answers.
    """

    state: State
    profile: str
    home: str
    directory: str
    log: LogStatus | None
    backends: tuple[BackendStatus, ...]
    gate: GateStatus
    tasks: tuple[TaskStatus, ...] = ()
    notes: tuple[str, ...] = ()
    stores: tuple[StoreStatus, ...] = ()
    stages: tuple[StageStatus, ...] = ()
    queues: Mapping[str, int] = attrs.field(factory=dict)
    pid: int = 0
    version: str = ""
    opened_at: int | None = None
