"""What a trial left off the machine, written down before it is sent, so that any process can have it erased."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from memoryd.core import Deletion, Event, Forget, MemoryWrite, Scope, Turn, new_event_id
from memoryd.store import write_private

__all__ = ["REMAINS", "Remains"]

REMAINS = "remains.json"


@attrs.define(slots=True)
class Remains:
    """``keys`` and ``sessions`` are pairs of a user and a name; ``seq`` is the last place of the trial's log.

    ``purpose`` tells the trials of one backend apart; ``home`` is the user's, where plug-ins are.  ``settings`` is the backend's table,
    which never holds a secret: those are named there, not written.
    """

    backend: str
    purpose: str
    home: str
    language: str
    settings: Mapping[str, Any] = attrs.field(repr=False)
    seq: int = 0
    keys: list[tuple[str, str]] = attrs.field(factory=list)
    sessions: list[tuple[str, str]] = attrs.field(factory=list)

    @classmethod
    def load(cls, path: Path) -> Remains:
        fields = json.loads(path.read_bytes())
        for pairs in ("keys", "sessions"):
            fields[pairs] = [(user, name) for user, name in fields[pairs]]
        return cls(**fields)

    def save(self, directory: Path) -> None:
        write_private(directory / REMAINS, json.dumps(attrs.asdict(self)).encode("ascii"))

    def note(self, events: Sequence[Event]) -> None:
        """``events`` come next in the log."""
        for event in events:
            match event:
                case MemoryWrite(scope=Scope(user=str(user)), key=key):
                    _add(self.keys, (user, key))
                case Turn(scope=Scope(user=str(user), session=str(session))):
                    _add(self.sessions, (user, session))
                case _:
                    pass
        self.seq += len(events)

    def erasing(self, at: int) -> list[Event]:
        """The events that erase everything: the keys, then for each user what stands at any place, and the sessions whole."""
        deletions: list[Event] = [Deletion(new_event_id(), Scope(user=user), at, key) for user, key in self.keys]
        targets = tuple(range(1, self.seq + len(deletions) + 1))
        users = dict.fromkeys(user for user, _ in (*self.keys, *self.sessions))
        return deletions + [Forget(new_event_id(), Scope(user=user), at, targets, self._sessions_of(user)) for user in users]

    def _sessions_of(self, user: str) -> tuple[str, ...]:
        return tuple(session for owner, session in self.sessions if owner == user)


def _add(pairs: list[tuple[str, str]], pair: tuple[str, str]) -> None:
    if pair not in pairs:
        pairs.append(pair)
