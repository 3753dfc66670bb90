"""Turns as messages: rows to be written, and what was read put together again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import attrs

from memoryd.core import Entry, Redactor, Scope, Turn, from_micros
from memoryd_honcho._client import Message, Row
from memoryd_honcho._names import Names
from memoryd_honcho._settings import Settings
from memoryd_honcho._wire import escape, pieces, unescape

__all__ = ["GONE", "NS", "Place", "TurnWriter", "joined", "marked_gone", "place_of", "sequence_mark"]

NS = "memoryd"
GONE = "memoryd-gone"
"""The namespace of messages that are erased: the server deletes their session later."""

ROLES = ("user", "assistant")


@attrs.frozen(slots=True, order=True)
class Place:
    """Which piece of which turn a message is; a second message with the same place is a copy."""

    event: str
    role: str
    index: int


def place_of(metadata: Mapping[str, Any]) -> Place | None:
    """The place of a message of ours, erased ones included; None for one of another program."""
    if metadata.get("ns") not in (NS, GONE):
        return None
    event, role, index = metadata.get("ev"), metadata.get("r"), metadata.get("i")
    if not isinstance(event, str) or role not in ROLES or not isinstance(index, int):
        return None
    return Place(event, role, index)


def sequence_mark(entry: Entry) -> str:
    """A place in the log as metadata holds it."""
    return f"{entry.cursor.epoch}:{entry.seq}"


def marked_gone(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata of an erased message: no search of ours finds it, an interrupted erasure does."""
    return {"ns": GONE, **{field: metadata[field] for field in ("ev", "r", "i", "n", "q") if field in metadata}}


def joined(messages: Iterable[Message], role: str) -> str:
    """The text of one role of one turn from its pieces, in any order and with copies."""
    found: dict[int, str] = {}
    for message in messages:
        place = place_of(message.metadata)
        if place is not None and place.role == role:
            found.setdefault(place.index, message.content)
    return "".join(unescape(found[index]) for index in sorted(found))


class TurnWriter:
    """Makes rows of turns.  Redaction is CPU work: off the event loop for a batch."""

    def __init__(self, names: Names, settings: Settings, redact: Redactor) -> None:
        self._names = names
        self._assistant = settings.assistant
        self._send_tools = settings.send_tools
        self._redact = redact
        self._about = lru_cache(1024)(self._described)

    def rows(self, entry: Entry, turn: Turn) -> list[Row]:
        """The messages of a turn; raises :class:`~memoryd.errors.ScopeMissing` for one that names no user."""
        user = turn.scope.need_user()
        mark = {**self._about(turn.scope, user), "ev": turn.event_id.hex(), "q": sequence_mark(entry), "at": turn.at}
        if self._send_tools and turn.parts:
            mark["parts"] = [escape(self._redact(part)) for part in turn.parts]
        texts = {"user": turn.user, "assistant": turn.assistant}
        return [row for role, text in texts.items() for row in self.row_pieces(user, role, text, mark)]

    def row_pieces(self, user: str, role: str, text: str, mark: Mapping[str, Any]) -> Iterator[Row]:
        """The messages of one text; ``mark`` is what their metadata has in common."""
        peer = self._names.peer(user) if role == "user" else self._assistant
        cut = pieces(self._redact(text))
        for index, piece in enumerate(cut):
            yield Row(peer, piece, {**mark, "r": role, "i": index, "n": len(cut)}, from_micros(int(mark["at"])))

    def _described(self, scope: Scope, user: str) -> Mapping[str, Any]:
        """What the metadata of a scope's messages has in common."""
        about = {"ns": NS, "u": self._names.user(user), **self._names.labels_of(scope)}
        if scope.session is not None:
            about["s"] = escape(self._redact(scope.session))
        return about
