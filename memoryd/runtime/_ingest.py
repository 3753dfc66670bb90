"""From a host's call to an accepted event: plain calls, safe from any thread, that never wait for a backend."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from time import perf_counter_ns
from typing import Any

from memoryd.core import (
    Accepted,
    Deletion,
    Edit,
    Event,
    MemoryWrite,
    Scope,
    SessionMark,
    Turn,
    check_name,
    check_text,
    current_scope,
    fence_marker,
    given_event,
    keyed,
    new_event_id,
    retired_forms,
    strip_echo,
    to_micros,
)
from memoryd.errors import InvalidInput, JournalUnavailable, StoreError
from memoryd.journal import Journal
from memoryd.runtime._kernel import Kernel
from memoryd.runtime._messages import turn_marks
from memoryd.runtime._once import Once

__all__ = ["Ingest", "event_time", "turn_key"]

_MAX_TURN = 64 << 20  # characters of one turn: far above any model's context, far below what SQLite can hold
_OFF_NULL = Accepted("off", None, "", "null backend")
_OFF_PRIVATE = Accepted("off", None, "", "private")
_OFF_ECHO = Accepted("off", None, "", "echo")
_REFUSALS = {
    "full": "the disk is full or below store.free_floor: free some space",
    "quota": "the log has reached log.max_bytes: raise it or forget something",
    "read-only": "the log cannot be written: check the owner and permissions of the memoryd home",
    "corrupt": "the log is damaged; nothing was deleted: run 'memoryd repair'",
    "missing": "the log was removed or replaced while it was open: end every program that uses it and open it again",
    "held-full": "the log is locked by another process and what can be held in memory is full",
}


def event_time(value: object, now: int, field: str = "created_at") -> int:
    """``value`` as microseconds: None is ``now``; an aware or naive (UTC) datetime, seconds since the epoch, or ISO 8601 text."""
    match value:
        case None:
            return now
        case datetime():
            return to_micros(value)
        case bool():
            raise InvalidInput(field, "expected a time, got bool")
        case int() | float():
            return _seconds(value, field)
        case str():
            try:
                return to_micros(datetime.fromisoformat(value))
            except ValueError:
                raise InvalidInput(field, "expected ISO 8601, such as 2026-01-31T12:00:00Z") from None
        case _:
            raise InvalidInput(field, f"expected a time, got {type(value).__name__}")


def _seconds(value: float, field: str) -> int:
    if not 0 <= value < 253_402_300_800:  # the year 10000; also refuses NaN
        raise InvalidInput(field, "expected seconds since the epoch, before the year 10000")
    return int(value * 1_000_000)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def turn_key(profile_key: bytes, scope: Scope, turn_id: str) -> bytes:
    """What stands for ``turn_id`` in the log: unique for each user and session, and not to be guessed after a forget."""
    return keyed(profile_key, "turn", _utf8(scope.need_user()), _utf8(scope.need_session()), _utf8(turn_id))


class Ingest:
    """Builds events from calls, under the scope of the calling context, and appends them."""

    def __init__(self, kernel: Kernel, marker: str) -> None:
        self._kernel = kernel
        self._markers = (marker, *map(fence_marker, kernel.profile.earlier))  # a block may be older than the key
        self._null = kernel.is_null
        self._stage = kernel.stages["append"]
        self._once = Once()

    def scope(self) -> Scope:
        """The scope of the call, bound to this profile."""
        self._kernel.check_open()
        return current_scope().checked_for(self._kernel.profile.name)

    def turn(
        self, user: str, assistant: str, *, messages: object = None, turn_id: str | None = None, created_at: object = None
    ) -> Accepted:
        scope = self.scope()
        scope.need_user()
        scope.need_session()
        said, answered = _turn_text("user", user), _turn_text("assistant", assistant)
        if not said and not answered:
            raise InvalidInput("turn", "user and assistant are both empty")
        at = event_time(created_at, self._kernel.clock())
        ids, parts = turn_marks(messages)
        key = None if turn_id is None else self._turn_key(scope, check_name("turn_id", turn_id))
        off = self._off(scope)
        if off is not None:
            return off
        said, answered = self._without_echo(said), self._without_echo(answered)
        if not said and not answered:
            return _OFF_ECHO
        return self.append(Turn(new_event_id(), scope, at, said, answered, turn_id, ids, parts), key)

    def _without_echo(self, text: str) -> str:
        for marker in self._markers:
            text = strip_echo(text, marker)
        return text

    def _turn_key(self, scope: Scope, turn_id: str) -> bytes:
        """After a change of the profile's key, a turn that was forgotten is still known by what the earlier key made."""
        profile, journal = self._kernel.profile, self._kernel.journal
        key = turn_key(profile.key, scope, turn_id)
        if not profile.earlier or journal is None:
            return key
        forms = retired_forms(profile.key, profile.earlier, lambda earlier: turn_key(earlier, scope, turn_id))
        try:
            return journal.known_turn_key([key, *forms])
        except StoreError:  # the append will say so
            return key

    def store(self, key: str, value: str, metadata: Mapping[str, Any] | None, created_at: object = None) -> Accepted:
        scope = self.scope()
        scope.need_user()
        at = event_time(created_at, self._kernel.clock())
        text = self._without_echo(_turn_text("value", value))
        kind = (metadata or {}).get("type", "preference") if isinstance(metadata, Mapping) else "preference"
        event = MemoryWrite(new_event_id(), scope, at, check_name("key", key), text, check_name("metadata.type", kind), metadata)
        return self._off(scope) or self.append(event)

    def delete(self, key: str) -> Accepted:
        scope = self.scope()
        scope.need_user()
        event = Deletion(new_event_id(), scope, self._kernel.clock(), check_name("key", key))
        return self._off(scope) or self.append(event)

    def edit_turn(self, target: bytes, user: str | None, assistant: str | None) -> Accepted:
        scope = self.scope()
        texts = [None if text is None else _turn_text(name, text) for name, text in (("user", user), ("assistant", assistant))]
        event = Edit(new_event_id(), scope, self._kernel.clock(), target, *texts)
        return self._off(scope) or self.append(event)

    def mark(self, mark: str, data: Mapping[str, Any] | None) -> Accepted:
        scope = self.scope()
        scope.need_user()
        scope.need_session()
        event = SessionMark(new_event_id(), scope, self._kernel.clock(), check_name("mark", mark), data)
        return self._off(scope) or self.append(event)

    def _off(self, scope: Scope) -> Accepted | None:
        """Where nothing may be recorded: the null backend, or a private scope (which its whole session keeps)."""
        if self._null:
            return _OFF_NULL
        return _OFF_PRIVATE if self.is_private(scope) else None

    def is_private(self, scope: Scope) -> bool:
        default = self._kernel.config.capture.private
        if scope.session is None or scope.user is None:
            return default if scope.private is None else scope.private
        return self._kernel.privacy.settle(scope.user, scope.session, scope.private, default)

    def append(self, event: Event, turn_key: bytes | None = None) -> Accepted:
        """Append and wake the writers; raises :class:`JournalUnavailable` for *refused*."""
        given = given_event()
        accepted = self._once.append(given, self._log(), lambda: self._append(event, turn_key)) if given else self._append(event, turn_key)
        if accepted.state == "journaled":
            self._kernel.bells.appended()
        elif accepted.state == "held":
            self._kernel.bells.held.ring()
        else:
            hint = _REFUSALS.get(accepted.reason, "the log cannot be written: see 'memoryd status'")
            raise JournalUnavailable(accepted.reason, f"not recorded ({accepted.reason}): {hint}")
        return accepted

    def _append(self, event: Event, turn_key: bytes | None) -> Accepted:
        started = perf_counter_ns()
        accepted = self._log().append(event, turn_key)
        self._stage.add(perf_counter_ns() - started)
        return accepted

    def _log(self) -> Journal:
        if self._kernel.journal is not None:
            return self._kernel.journal
        problem = self._kernel.journal_problem
        reason = problem.cause if problem is not None else "io"
        raise JournalUnavailable(reason, f"not recorded ({reason}): {problem}; it is tried again")


def _turn_text(field: str, value: object) -> str:
    text = check_text(field, value)
    if len(text) > _MAX_TURN:
        raise InvalidInput(field, f"is {len(text)} characters long; at most {_MAX_TURN} are allowed")
    return text
