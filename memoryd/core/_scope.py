"""Scope: whose memory a call is about.  It travels in a :class:`contextvars.ContextVar` and is captured at the call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import attrs

from memoryd.core._check import optional_flag, optional_name
from memoryd.core._value import Value
from memoryd.errors import ScopeConflict, ScopeMissing

__all__ = ["Scope", "bind_scope", "current_scope", "scope"]


@attrs.frozen(slots=True, eq=False, repr=False)
class Scope(Value):
    """Who a memory belongs to.

    ``profile`` and ``user`` isolate; ``session`` is the thread; ``agent``, ``workspace`` and ``platform`` are labels that are stored and
    can be filtered by, and never isolate; ``private`` belongs to a session and keeps everything of it out of every file.
    Names are any non-empty text of at most 500 characters.  None means *not given*.
    """

    profile: str | None = attrs.field(default=None, validator=optional_name)
    user: str | None = attrs.field(default=None, validator=optional_name)
    session: str | None = attrs.field(default=None, validator=optional_name)
    agent: str | None = attrs.field(default=None, validator=optional_name)
    workspace: str | None = attrs.field(default=None, validator=optional_name)
    platform: str | None = attrs.field(default=None, validator=optional_name)
    private: bool | None = attrs.field(default=None, validator=optional_flag)

    def merged(self, changes: dict[str, Any]) -> Scope:
        """This scope with the given fields replaced; a value of None leaves a field as it is."""
        given = {name: value for name, value in changes.items() if value is not None}
        return attrs.evolve(self, **given) if given else self

    def need_user(self) -> str:
        """The user, or :class:`ScopeMissing`."""
        if self.user is None:
            raise ScopeMissing("this call needs a user: wrap it in 'with memoryd.scope(user=...)'")
        return self.user

    def need_session(self) -> str:
        """The session, or :class:`ScopeMissing`."""
        if self.session is None:
            raise ScopeMissing("this call needs a session: wrap it in 'with memoryd.scope(session=...)'")
        return self.session

    def checked_for(self, profile: str) -> Scope:
        """This scope, or :class:`ScopeConflict` where it names another profile than ``profile``."""
        if self.profile is not None and self.profile != profile:
            raise ScopeConflict("the scope names another profile than the runtime's: open a runtime for that profile")
        return self


_EMPTY = Scope()
_current: ContextVar[Scope] = ContextVar("memoryd_scope", default=_EMPTY)


def current_scope() -> Scope:
    """The scope of the calling context (an empty one outside every ``with scope(...)``)."""
    return _current.get()


@contextmanager
def bind_scope(value: Scope) -> Iterator[Scope]:
    """Make ``value`` the current scope for the block, replacing the outer one whole."""
    token = _current.set(value)
    try:
        yield value
    finally:
        _current.reset(token)


@contextmanager
def scope(
    *,
    user: str | None = None,
    session: str | None = None,
    agent: str | None = None,
    workspace: str | None = None,
    platform: str | None = None,
    private: bool | None = None,
    profile: str | None = None,
) -> Iterator[Scope]:
    """Set parts of the scope for the block; parts that are not given come from the enclosing scope.

    Raises :class:`~memoryd.errors.InvalidInput` naming the field for a value that is no name.
    """
    changes = {
        "user": user, "session": session, "agent": agent, "workspace": workspace,
        "platform": platform, "private": private, "profile": profile,
    }
    with bind_scope(_current.get().merged(changes)) as bound:
        yield bound
