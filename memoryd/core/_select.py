"""Which events a *forget* means: a pure scan over the log in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import attrs

from memoryd.core._check import is_flag, optional_name, required_name
from memoryd.core._events import Deletion, Edit, Entry, Erased, Event, Forget, MemoryWrite, SessionMark, Turn
from memoryd.core._value import Value
from memoryd.errors import InvalidInput

__all__ = ["Selection", "Selector"]

_MIN_QUOTE = 12  # characters: shorter texts stand in others by chance
_MAX_QUOTES = 64


@attrs.frozen(slots=True, eq=False, repr=False)
class Selector(Value):
    """Everything of ``user`` that matches all given parts.  ``ids`` are event ids of turns or of single values of memories; ``since``
    and ``until`` are microseconds since the epoch (until is exclusive)."""

    user: str = attrs.field(validator=required_name)
    ids: frozenset[bytes] | None = None
    key: str | None = attrs.field(default=None, validator=optional_name)
    session: str | None = attrs.field(default=None, validator=optional_name)
    since: int | None = None
    until: int | None = None
    everything: bool = attrs.field(default=False, validator=is_flag)

    def __attrs_post_init__(self) -> None:
        parts = (self.ids, self.key, self.session, self.since, self.until)
        if all(part is None for part in parts) and not self.everything:
            raise InvalidInput("forget", "say what: id, key, session, since, until, or everything=True for all of the user")

    @property
    def whole_session(self) -> bool:
        """True where the session itself goes, not only some of its events."""
        return self.session is not None and (self.ids, self.key, self.since, self.until) == (None, None, None, None)

    def matches(self, event: Event) -> bool:
        match event:
            case Erased() | Forget():
                return False
            case Turn() | SessionMark() | MemoryWrite() | Deletion() | Edit():
                return self._in_scope(event) and self._named(event)

    def _in_scope(self, event: Turn | SessionMark | MemoryWrite | Deletion | Edit) -> bool:
        if event.scope.user != self.user:
            return False
        if self.session is not None and event.scope.session != self.session:
            return False
        return (self.since is None or event.at >= self.since) and (self.until is None or event.at < self.until)

    def _named(self, event: Turn | SessionMark | MemoryWrite | Deletion | Edit) -> bool:
        if self.ids is not None and event.event_id not in self.ids:
            return False
        if self.key is None:
            return True
        return isinstance(event, (MemoryWrite, Deletion)) and event.key == self.key


@attrs.define(slots=True)
class Selection:
    """What a scan has found: the events to erase, with the edits of each erased turn."""

    selector: Selector
    entries: list[Entry] = attrs.field(factory=list)
    quoted: int = 0
    _ids: set[bytes] = attrs.field(factory=set)

    def scan(self, entries: Iterable[Entry]) -> None:
        """Look at the next entries, in log order (an edit comes after its turn)."""
        for entry in entries:
            event = entry.event
            edits_erased = isinstance(event, Edit) and event.target in self._ids
            if edits_erased or self.selector.matches(event):
                self.entries.append(entry)
                self._ids.add(event.event_id)

    def count_quotes(self, entries: Iterable[Entry]) -> None:
        """Count in ``quoted`` the user's other events that hold an erased text whole; of many erased texts the first are looked for."""
        wanted = list(self._quotable())
        for entry in entries:
            if entry.event.event_id not in self._ids and _user_of(entry.event) == self.selector.user:
                said = _texts(entry.event)
                self.quoted += any(text in other for text in wanted for other in said)

    def _quotable(self) -> Iterator[str]:
        texts = (text for entry in self.entries for text in _texts(entry.event))
        return islice((text for text in texts if len(text) >= _MIN_QUOTE), _MAX_QUOTES)

    @property
    def seqs(self) -> tuple[int, ...]:
        return tuple(entry.seq for entry in self.entries)

    @property
    def sessions(self) -> tuple[str, ...]:
        """Sessions that the selector names whole, for the projection to drop."""
        if self.selector.whole_session and self.selector.session is not None:
            return (self.selector.session,)
        if self.selector.everything:
            return tuple(sorted({e.event.scope.session for e in self.entries if _has_session(e.event)}))  # type: ignore[union-attr,misc]
        return ()


def _texts(event: Event) -> tuple[str, ...]:
    match event:
        case Turn():
            return event.user, event.assistant
        case Edit():
            return event.user or "", event.assistant or ""
        case MemoryWrite():
            return (event.value,)
        case Deletion() | SessionMark() | Forget() | Erased():
            return ()


def _user_of(event: Event) -> str | None:
    return None if isinstance(event, Erased) else event.scope.user


def _has_session(event: Event) -> bool:
    return not isinstance(event, Erased) and event.scope.session is not None
