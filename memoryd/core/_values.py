"""What calls return.  All frozen; texts are never part of a ``repr`` that a log line could pick up by accident."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, overload

import attrs

from memoryd.core._check import is_text, not_negative, required_name
from memoryd.core._metadata import checked_metadata
from memoryd.core._value import Value

__all__ = [
    "Accepted", "AcceptedState", "CheckpointInfo", "Context", "Drained", "Forgotten", "GateVerdict", "Hit", "HitKind", "Memory",
    "MemoryVersion", "Recall", "Receipt", "Restored", "Stored", "Verification", "from_micros", "to_micros",
]

AcceptedState = Literal["journaled", "held", "refused", "off"]
HitKind = Literal["turn", "memory"]
GateVerdict = Literal["archived", "nothing-to-archive", "warned", "released", "off"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_micros(value: int) -> datetime:
    """Microseconds since the epoch as an aware UTC time (years beyond 9999 are cut to the last instant)."""
    try:
        return _EPOCH + timedelta(microseconds=value)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def to_micros(value: datetime) -> int:
    """An aware time as microseconds since the epoch; a naive one is taken as UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return max(0, (aware - _EPOCH) // timedelta(microseconds=1))


@attrs.frozen(slots=True, eq=False, repr=False)
class Accepted(Value):
    """What happened to an event.

    ``state``: *journaled* (on disk, survives kill -9), *held* (the log was locked; in bounded memory, ``seq`` is None), *refused*
    (not kept; only host adapters see it, the Python API raises), *off* (private scope, or the null backend).
    ``reason`` is empty, ``duplicate`` for a repeated ``turn_id``, or a short class of why it is held, refused or off.
    """

    state: AcceptedState
    seq: int | None = None
    event_id: str = ""
    reason: str = ""


@attrs.frozen(slots=True, eq=False, repr=False)
class Stored(Value):
    """``accepted`` says that the log has it; ``applied`` that the primary backend had it too within 2 s.  False is no error."""

    accepted: Accepted
    applied: bool


@attrs.frozen(slots=True, eq=False, repr=False)
class Memory(Value):
    """A keyed fact of a user, as it is now.  ``id`` stays the same over upserts and edits."""

    id: str
    key: str = attrs.field(validator=required_name)
    value: str = attrs.field(validator=is_text, repr=False)
    user_id: str = attrs.field(validator=required_name)
    type: str = attrs.field(default="preference", validator=required_name)
    created_at: datetime = _EPOCH
    updated_at: datetime = _EPOCH
    metadata: Mapping[str, Any] = attrs.field(factory=dict, converter=checked_metadata, repr=False)


@attrs.frozen(slots=True, eq=False, repr=False)
class MemoryVersion(Value):
    """One value that a key had: valid from ``valid_from`` (inclusive) until ``valid_until`` (None: still current)."""

    event_id: str
    key: str
    value: str = attrs.field(repr=False)
    type: str
    valid_from: datetime
    valid_until: datetime | None
    metadata: Mapping[str, Any] = attrs.field(factory=dict, repr=False)


@attrs.frozen(slots=True, eq=False, repr=False)
class Hit(Value):
    """One thing that recall found.

    ``id`` is the event id (turn) or the memory's id; ``role`` says which utterance of a turn matched best; ``at`` is the event's own
    time; ``source`` names the backend and place, e.g. ``local:turn``; ``why`` holds the parts of the score.  ``superseded`` marks a
    value of a memory that is no longer current, with ``valid_until``.  ``copies`` counts equal hits that were folded into this one.
    """

    id: str
    kind: HitKind
    text: str = attrs.field(repr=False)
    score: float
    at: datetime
    source: str
    seq: int | None = None
    turn_id: str | None = None
    session: str | None = None
    role: str | None = None
    key: str | None = None
    superseded: bool = False
    valid_until: datetime | None = None
    copies: int = 1
    labels: Mapping[str, str] = attrs.field(factory=dict)
    why: Mapping[str, float] = attrs.field(factory=dict)


@attrs.frozen(slots=True, eq=False, repr=False)
class Recall(Value, Sequence[Hit]):
    """The hits of one query, best first.  ``behind``: events accepted before the call that the answer does not cover yet;
    ``stale``: the primary backend could not answer in time and local did; ``source``: the backend that answered."""

    hits: tuple[Hit, ...] = ()
    behind: int = 0
    stale: bool = False
    source: str = "local"

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Hit]: ...
    def __getitem__(self, index: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)


@attrs.frozen(slots=True, eq=False, repr=False)
class Context(Value):
    """What a host injects before the next turn: ``text`` is the fenced block (empty when there is nothing to say)."""

    query: str = attrs.field(repr=False)
    text: str = attrs.field(repr=False)
    hits: tuple[Hit, ...] = attrs.field(default=(), repr=False)
    source: str = "none"
    prefetched: bool = False
    complete: bool = True


@attrs.frozen(slots=True, eq=False, repr=False)
class Drained(Value):
    """``local``: the projection has everything accepted; ``remote``: every remote backend has it."""

    local: bool
    remote: bool

    def __bool__(self) -> bool:
        return self.local and self.remote


@attrs.frozen(slots=True, eq=False, repr=False)
class Forgotten(Value):
    """``erased`` events and archive rows are gone from every file; ``pending`` parts go on at the next open.

    ``quoted`` counts places where other turns or other sessions' checkpoints hold the same words: reported, not erased.
    ``warnings`` name what memoryd cannot reach (known backups and exports).
    """

    erased: int = 0
    pending: int = 0
    quoted: int = 0
    warnings: tuple[str, ...] = ()


@attrs.frozen(slots=True, eq=False, repr=False)
class Receipt(Value):
    """Proof that a transcript is archived, or why a compaction is allowed without it.

    ``verdict`` *archived*: the bytes were committed with fsync, re-read through a second connection and compared.  ``rows`` counts
    the raw rows given, ``evidence`` those that carry identity, ``new_rows`` those added by this attempt, ``degraded`` rows kept as
    readable text, ``erased`` rows that stay forgotten.  ``warning`` is set for quota, fallback archive and gate modes.
    """

    id: str
    attempt: int
    verdict: GateVerdict
    session: str
    rows: int = attrs.field(default=0, validator=not_negative)
    evidence: int = attrs.field(default=0, validator=not_negative)
    new_rows: int = attrs.field(default=0, validator=not_negative)
    degraded: int = attrs.field(default=0, validator=not_negative)
    erased: int = attrs.field(default=0, validator=not_negative)
    host: str = ""
    trigger: str = ""
    at: datetime = _EPOCH
    archive: str = ""
    warning: str = ""

    def __bool__(self) -> bool:
        return self.verdict == "archived"


@attrs.frozen(slots=True, eq=False, repr=False)
class CheckpointInfo(Value):
    """A checkpoint as listed: its id, whose it is, how many evidence rows, and its attempts (oldest first)."""

    id: str
    user: str
    session: str
    count: int
    attempts: tuple[Receipt, ...] = ()


@attrs.frozen(slots=True, eq=False, repr=False)
class Restored(Value):
    """The raw rows of one attempt, in order, as canonical JSON bytes; a forgotten row is None and counted in ``erased``.

    ``source`` holds the source's own bytes where a host gave a transcript.
    """

    id: str
    attempt: int
    rows: tuple[bytes | None, ...] = attrs.field(repr=False)
    erased: int = 0
    source: bytes | None = attrs.field(default=None, repr=False)


@attrs.frozen(slots=True, eq=False, repr=False)
class Verification(Value):
    """Every stored digest was recomputed.  ``corrupt`` lists checkpoint ids whose bytes differ from their digests."""

    checkpoints: int
    rows: int
    erased: int
    corrupt: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.corrupt
