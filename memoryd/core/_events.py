"""Events: what the log keeps.  The union :data:`Event` is closed; a ``match`` over it must name every member."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

import attrs

from memoryd.core._check import is_bytes16, is_text, not_negative, optional_text, required_name
from memoryd.core._metadata import checked_metadata
from memoryd.core._scope import Scope
from memoryd.core._value import Value

__all__ = [
    "Cursor", "Deletion", "Edit", "Entry", "Erased", "Event", "Forget", "GivenEvent", "MemoryWrite", "SessionMark", "Turn",
    "bind_event", "given_event", "new_event_id",
]


class GivenEvent(NamedTuple):
    """The identity that a client made for the event of one call, so that it can send the call again.  ``after`` is set where it does:
    the event, if it was accepted before, has a seq above that."""

    id: bytes
    after: int | None = None


_given: ContextVar[GivenEvent | None] = ContextVar("memoryd_event", default=None)


def given_event() -> GivenEvent | None:
    """What :func:`bind_event` set for the calling context."""
    return _given.get()


@contextmanager
def bind_event(value: GivenEvent | None) -> Iterator[None]:
    """Make ``value`` the identity of the one event that a call in this block makes."""
    token = _given.set(value)
    try:
        yield
    finally:
        _given.reset(token)


def new_event_id() -> bytes:
    """128 random bits: the identity of an event, made once, at acceptance or by the client that :func:`given_event` speaks of."""
    given = _given.get()
    return secrets.token_bytes(16) if given is None else given.id


@attrs.frozen(slots=True, eq=False, repr=False)
class Turn(Value):
    """One user text and the answer.  ``at`` is the event's time in microseconds since the epoch; it never decides order.

    ``turn_id`` is the caller's idempotency key; ``message_ids`` and ``parts`` (kinds of non-text parts, such as ``image``) come from
    the host's messages of this turn.  ``user`` or ``assistant`` may be empty, not both.
    """

    event_id: bytes = attrs.field(validator=is_bytes16)
    scope: Scope
    at: int = attrs.field(validator=not_negative)
    user: str = attrs.field(validator=is_text, repr=False)
    assistant: str = attrs.field(validator=is_text, repr=False)
    turn_id: str | None = attrs.field(default=None, validator=optional_text)
    message_ids: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


@attrs.frozen(slots=True, eq=False, repr=False)
class MemoryWrite(Value):
    """A keyed fact of a user was stored; it replaces the earlier value and its metadata whole."""

    event_id: bytes = attrs.field(validator=is_bytes16)
    scope: Scope
    at: int = attrs.field(validator=not_negative)
    key: str = attrs.field(validator=required_name)
    value: str = attrs.field(validator=is_text, repr=False)
    type: str = attrs.field(default="preference", validator=required_name)
    metadata: Mapping[str, Any] = attrs.field(factory=dict, converter=checked_metadata, repr=False)


@attrs.frozen(slots=True, eq=False, repr=False)
class Deletion(Value):
    """A keyed fact is no longer current; its history stays until it is forgotten."""

    event_id: bytes = attrs.field(validator=is_bytes16)
    scope: Scope
    at: int = attrs.field(validator=not_negative)
    key: str = attrs.field(validator=required_name)


@attrs.frozen(slots=True, eq=False, repr=False)
class Edit(Value):
    """The texts of an accepted turn were corrected.  ``target`` is the turn's event id; None leaves a text as it is."""

    event_id: bytes = attrs.field(validator=is_bytes16)
    scope: Scope
    at: int = attrs.field(validator=not_negative)
    target: bytes = attrs.field(validator=is_bytes16)
    user: str | None = attrs.field(default=None, validator=optional_text, repr=False)
    assistant: str | None = attrs.field(default=None, validator=optional_text, repr=False)


@attrs.frozen(slots=True, eq=False, repr=False)
class Forget(Value):
    """Erase: a tombstone.  ``targets`` are the sequence numbers whose payload is erased, ascending, all below this event's own.

    ``sessions`` names the sessions that were forgotten whole, so that a projection drops their rows too.
    """

    event_id: bytes = attrs.field(validator=is_bytes16)
    scope: Scope
    at: int = attrs.field(validator=not_negative)
    targets: tuple[int, ...] = ()
    sessions: tuple[str, ...] = ()


@attrs.frozen(slots=True, eq=False, repr=False)
class SessionMark(Value):
    """Something happened to a session: ``start``, ``end``, ``switch``, ``compaction``, ``branch``, ``rewind``, ``reset``, or a word of
    the host's own."""

    event_id: bytes = attrs.field(validator=is_bytes16)
    scope: Scope
    at: int = attrs.field(validator=not_negative)
    mark: str = attrs.field(validator=required_name)
    data: Mapping[str, Any] = attrs.field(factory=dict, converter=checked_metadata, repr=False)


@attrs.frozen(slots=True, eq=False, repr=False)
class Erased(Value):
    """What is left of an event that was forgotten: its place in the order."""

    event_id: bytes = attrs.field(validator=is_bytes16)
    at: int = attrs.field(validator=not_negative)


Event: TypeAlias = Turn | MemoryWrite | Deletion | Edit | Forget | SessionMark | Erased


@attrs.frozen(slots=True, order=True)
class Cursor:
    """A place in a log: everything up to and including ``seq`` of ``epoch``.  Cursors of two epochs are not comparable."""

    epoch: str
    seq: int = attrs.field(validator=not_negative)


@attrs.frozen(slots=True, eq=False, repr=False)
class Entry(Value):
    """An event with its place in the log."""

    cursor: Cursor
    event: Event

    @property
    def seq(self) -> int:
        return self.cursor.seq
