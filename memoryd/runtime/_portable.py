"""Events as JSON lines that any program can read, and back, exactly (docs/reference/file-formats.md).

A log refers to forgotten events by sequence number, which means nothing elsewhere: here a forget names them by their ids.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

import attrs

from memoryd.core import (
    Deletion,
    Edit,
    Erased,
    Event,
    Forget,
    MemoryWrite,
    Scope,
    SessionMark,
    Turn,
    Value,
    from_micros,
    to_micros,
)
from memoryd.errors import InvalidInput

__all__ = ["Portable", "event_of", "portable_event", "portable_line", "text_in", "text_out"]

_LABELS = ("user", "session", "agent", "workspace", "platform")


@attrs.frozen(slots=True, eq=False, repr=False)
class Portable(Value):
    """An event without its place in a log.  ``targets`` are the ids of what a :class:`Forget` erased; its own are empty."""

    event: Event
    targets: tuple[bytes, ...] = ()


# -- to JSON -----------------------------------------------------------------------------------------------------------------


def portable_line(row: Mapping[str, Any]) -> bytes:
    """``row`` as one line in UTF-8; where a text of metadata has lone surrogates, everything beyond ASCII is escaped."""
    try:
        return json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        return json.dumps(row).encode("ascii") + b"\n"


def portable_event(found: Portable) -> dict[str, Any]:
    """``found`` as a JSON object; :func:`event_of` is its inverse."""
    event = found.event
    row: dict[str, Any] = {"kind": _KINDS[type(event)], "id": event.event_id.hex(), "at": from_micros(event.at).isoformat()}
    if not isinstance(event, Erased):
        row["scope"] = {label: text_out(value) for label in _LABELS if (value := getattr(event.scope, label)) is not None}
    return row | {name: value for name, value in _body(found).items() if value is not None}


def _body(found: Portable) -> dict[str, Any]:
    match found.event:
        case Turn() as turn:
            marks = {"message_ids": _outs(turn.message_ids) or None, "parts": _outs(turn.parts) or None}
            return {"user": text_out(turn.user), "assistant": text_out(turn.assistant), "turn_id": _maybe(turn.turn_id), **marks}
        case MemoryWrite() as write:
            return {"key": text_out(write.key), "value": text_out(write.value), "type": text_out(write.type), "metadata": write.metadata}
        case Deletion() as deletion:
            return {"key": text_out(deletion.key)}
        case Edit() as edit:
            return {"target": edit.target.hex(), "user": _maybe(edit.user), "assistant": _maybe(edit.assistant)}
        case Forget() as forget:
            return {"targets": [target.hex() for target in found.targets], "sessions": _outs(forget.sessions)}
        case SessionMark() as mark:
            return {"mark": text_out(mark.mark), "data": mark.data}
        case Erased():
            return {}


def text_out(text: str) -> Any:
    """Text as it is; what UTF-8 cannot hold as its bytes, because JSON would join two lone surrogates into one character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return {"base64": b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")}
    return text


def _maybe(text: str | None) -> Any:
    return None if text is None else text_out(text)


def _outs(texts: Iterable[str]) -> list[Any]:
    return [text_out(text) for text in texts]


# -- from JSON ---------------------------------------------------------------------------------------------------------------


def event_of(row: object) -> Portable:
    """The event of one line.  Raises :class:`InvalidInput` with the key that is wrong; nothing that is unknown is passed over."""
    if not isinstance(row, dict):
        raise InvalidInput("event", "expected an object")
    fields = _Fields(row)
    reader = _READERS.get(fields.word("kind"))
    if reader is None:
        raise InvalidInput("kind", f"expected one of {', '.join(_READERS)}")
    found = reader(fields)
    fields.end()
    return found


class _Fields:
    """The keys of a line, each taken once."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row = dict(row)

    def take(self, name: str) -> Any:
        if name not in self._row:
            raise InvalidInput(name, "is missing")
        return self._row.pop(name)

    def word(self, name: str) -> str:
        value = self.take(name)
        if not isinstance(value, str):
            raise InvalidInput(name, "expected text")
        return value

    def text(self, name: str) -> str:
        return text_in(name, self.take(name))

    def maybe(self, name: str) -> str | None:
        return self.text(name) if name in self._row else None

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(text_in(name, item) for item in self._list(name))

    def id(self, name: str) -> bytes:
        return _id(name, self.take(name))

    def ids(self, name: str) -> tuple[bytes, ...]:
        return tuple(_id(name, item) for item in self._list(name))

    def head(self) -> tuple[bytes, Scope, int]:
        """What every event with a scope begins with."""
        return self.id("id"), self.scope(), self.at()

    def at(self) -> int:
        try:
            return to_micros(datetime.fromisoformat(self.word("at")))
        except (ValueError, OverflowError):
            raise InvalidInput("at", "expected ISO 8601, such as 2026-01-31T12:00:00+00:00") from None

    def scope(self) -> Scope:
        labels = self.take("scope")
        if not isinstance(labels, dict) or labels.keys() - set(_LABELS):
            raise InvalidInput("scope", f"expected an object of {', '.join(_LABELS)}")
        named = {label: text_in(label, value) for label, value in labels.items()}
        return Scope().merged(named)

    def end(self) -> None:
        for name in self._row:
            raise InvalidInput(name[:80], "unknown key")

    def _list(self, name: str) -> list[Any]:
        value = self._row.pop(name, [])
        if not isinstance(value, list):
            raise InvalidInput(name, "expected a list")
        return value


def text_in(name: str, value: object) -> str:
    """What :func:`text_out` wrote.  Raises :class:`InvalidInput`."""
    match value:
        case str():
            return value
        case {"base64": str(data), **others} if not others:
            try:
                return b64decode(data, validate=True).decode("utf-8", "surrogatepass")
            except (binascii.Error, UnicodeDecodeError):
                pass
    raise InvalidInput(name, 'expected text, or {"base64": ...} for what UTF-8 cannot hold')


def _id(name: str, value: object) -> bytes:
    try:
        raw = bytes.fromhex(value) if isinstance(value, str) else b""
    except ValueError:
        raw = b""
    if len(raw) != 16:
        raise InvalidInput(name, "expected 32 hexadecimal digits")
    return raw


def _turn(fields: _Fields) -> Portable:
    said = fields.text("user"), fields.text("assistant"), fields.maybe("turn_id")
    return Portable(Turn(*fields.head(), *said, fields.texts("message_ids"), fields.texts("parts")))


def _memory(fields: _Fields) -> Portable:
    body = fields.text("key"), fields.text("value"), fields.text("type"), fields.take("metadata")
    return Portable(MemoryWrite(*fields.head(), *body))


def _deletion(fields: _Fields) -> Portable:
    return Portable(Deletion(*fields.head(), fields.text("key")))


def _edit(fields: _Fields) -> Portable:
    return Portable(Edit(*fields.head(), fields.id("target"), fields.maybe("user"), fields.maybe("assistant")))


def _forget(fields: _Fields) -> Portable:
    return Portable(Forget(*fields.head(), (), fields.texts("sessions")), fields.ids("targets"))


def _mark(fields: _Fields) -> Portable:
    return Portable(SessionMark(*fields.head(), fields.text("mark"), fields.take("data")))


def _erased(fields: _Fields) -> Portable:
    return Portable(Erased(fields.id("id"), fields.at()))


_Reader: TypeAlias = Callable[[_Fields], Portable]
_KINDS: dict[type[Any], str] = {
    Turn: "turn", MemoryWrite: "memory", Deletion: "deletion", Edit: "edit", Forget: "forget", SessionMark: "mark", Erased: "erased",
}  # fmt: skip
_READERS: dict[str, _Reader] = {
    "turn": _turn, "memory": _memory, "deletion": _deletion, "edit": _edit, "forget": _forget, "mark": _mark, "erased": _erased,
}  # fmt: skip
