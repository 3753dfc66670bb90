"""What a stretch of the log says by its end: the texts that later entries left standing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import attrs

from memoryd.core import Deletion, Edit, Entry, Erased, Forget, Hit, MemoryWrite, SessionMark, Turn, Value

__all__ = ["Said", "still_standing", "texts_of"]

_Events: TypeAlias = dict[int, Turn | MemoryWrite]
_Thread: TypeAlias = tuple[str | None, str | None]


@attrs.frozen(slots=True, eq=False, repr=False)
class Said(Value):
    """One text: an utterance of a turn (``role``, ``actor``, its ``place`` in the ``thread``) or the value of a memory (no role)."""

    seq: int
    event: Turn | MemoryWrite
    text: str
    role: str | None = None
    actor: str = ""
    thread: _Thread | None = None
    place: int = 0

    @property
    def searched(self) -> str:
        """What a query is compared with: a memory is found by its key, too."""
        return self.text if isinstance(self.event, Turn) else f"{self.event.key} {self.text}"


def texts_of(entries: Sequence[Entry]) -> Iterator[Said]:
    """The texts of ``entries`` (log order) after their edits, deletions and forgets."""
    events: _Events = {}
    for entry in entries:
        _follow(events, entry)
    places: Counter[_Thread] = Counter()
    for seq, event in events.items():
        yield from _said(seq, event, places)


def _follow(events: _Events, entry: Entry) -> None:
    event = entry.event
    match event:
        case Turn() | MemoryWrite():
            events[entry.seq] = event
        case Edit():
            _edit(events, event)
        case Deletion():
            for seq in [seq for seq, one in events.items() if _is_value_of(one, event)]:
                del events[seq]
        case Forget():
            for seq in event.targets:
                events.pop(seq, None)
        case SessionMark() | Erased():
            pass


def _edit(events: _Events, edit: Edit) -> None:
    for seq, event in events.items():
        if isinstance(event, Turn) and event.event_id == edit.target:
            user = event.user if edit.user is None else edit.user
            assistant = event.assistant if edit.assistant is None else edit.assistant
            events[seq] = attrs.evolve(event, user=user, assistant=assistant)


def _is_value_of(event: Turn | MemoryWrite, deletion: Deletion) -> bool:
    return isinstance(event, MemoryWrite) and event.key == deletion.key and event.scope.user == deletion.scope.user


def _said(seq: int, event: Turn | MemoryWrite, places: Counter[_Thread]) -> Iterator[Said]:
    if isinstance(event, MemoryWrite):
        yield Said(seq, event, event.value)
        return
    thread = (event.scope.user, event.scope.session)
    for role, text, actor in (("user", event.user, event.scope.user), ("assistant", event.assistant, event.scope.agent)):
        if text:
            yield Said(seq, event, text, role, actor or "", thread, places[thread])
            places[thread] += 1


def still_standing(hits: Iterable[Hit], user: str, entries: Sequence[Entry]) -> list[Hit]:
    """The hits of ``user`` after later ``entries``: without what these delete or forget, and with the texts of their edits."""
    standing = list(hits)
    for event in (entry.event for entry in entries):
        match event:
            case Forget() if event.scope.user == user:
                standing = [hit for hit in standing if hit.seq not in event.targets and hit.session not in event.sessions]
            case Deletion() if event.scope.user == user:
                standing = [hit for hit in standing if hit.key != event.key]
            case Edit():
                standing = [_edited(hit, event) if hit.id == event.target.hex() else hit for hit in standing]
            case _:
                pass
    return [hit for hit in standing if hit.text]


def _edited(hit: Hit, edit: Edit) -> Hit:
    text = edit.assistant if hit.role == "assistant" else edit.user
    return hit if text is None else attrs.evolve(hit, text=text)
