"""Event payloads as bytes: a msgpack array whose first item is the format's version (see docs/reference/file-formats.md).

``event_id``, ``at`` and the kind are columns of the log, so that they survive when a payload is erased.  Text travels as msgpack *str*;
text with lone surrogates, which UTF-8 cannot hold, as msgpack *bin* in ``surrogatepass`` encoding.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from memoryd.core._events import Deletion, Edit, Erased, Event, Forget, MemoryWrite, SessionMark, Turn
from memoryd.core._scope import Scope
from memoryd.errors import StoreCorrupt, StoreTooNew

__all__ = ["PAYLOAD_VERSION", "decode_event", "encode_event", "kind_of"]

PAYLOAD_VERSION = 1

_KINDS: dict[type[Any], int] = {Turn: 1, MemoryWrite: 2, Deletion: 3, Edit: 4, Forget: 5, SessionMark: 6, Erased: 0}

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Any]).decode


def kind_of(event: Event) -> int:
    """The number that stands for the event's class in the log."""
    return _KINDS[type(event)]


def encode_event(event: Event) -> bytes:
    """The payload of ``event``; an :class:`Erased` has none and gives ``b""``."""
    if type(event) is Erased:
        return b""
    scope = event.scope  # type: ignore[union-attr]  # every other member of the union has one
    head = [PAYLOAD_VERSION, scope.user, scope.session, scope.agent, scope.workspace, scope.platform]
    fields = head + _body(event)
    try:
        return _encode(fields)
    except UnicodeEncodeError:
        return _encode([_surrogate_safe(field) for field in fields])


def _body(event: Event) -> list[Any]:
    match event:
        case Turn():
            return [event.user, event.assistant, event.turn_id, event.message_ids, event.parts]
        case MemoryWrite():
            return [event.key, event.value, event.type, json.dumps(event.metadata)]
        case Deletion():
            return [event.key]
        case Edit():
            return [event.target, event.user, event.assistant]
        case Forget():
            return [event.targets, event.sessions]
        case SessionMark():
            return [event.mark, json.dumps(event.data)]
        case Erased():
            return []


def _surrogate_safe(field: Any) -> Any:
    if isinstance(field, str):
        return field.encode("utf-8", "surrogatepass")
    if isinstance(field, tuple):
        return [_surrogate_safe(item) for item in field]
    return field


def _text(field: Any) -> Any:
    return field.decode("utf-8", "surrogatepass") if isinstance(field, bytes) else field


def _texts(field: list[Any]) -> tuple[str, ...]:
    return tuple(map(_text, field))


def _turn(event_id: bytes, at: int, scope: Scope, body: list[Any]) -> Event:
    user, assistant, turn_id, message_ids, parts = body[:5]
    return Turn(
        event_id, scope, at, _text(user), _text(assistant), _text(turn_id), _texts(message_ids), _texts(parts)
    )


def _memory_write(event_id: bytes, at: int, scope: Scope, body: list[Any]) -> Event:
    key, value, type_, metadata = body[:4]
    return MemoryWrite(event_id, scope, at, _text(key), _text(value), _text(type_), json.loads(metadata))


def _deletion(event_id: bytes, at: int, scope: Scope, body: list[Any]) -> Event:
    return Deletion(event_id, scope, at, _text(body[0]))


def _edit(event_id: bytes, at: int, scope: Scope, body: list[Any]) -> Event:
    return Edit(event_id, scope, at, body[0], _text(body[1]), _text(body[2]))


def _forget(event_id: bytes, at: int, scope: Scope, body: list[Any]) -> Event:
    return Forget(event_id, scope, at, tuple(body[0]), _texts(body[1]))


def _session_mark(event_id: bytes, at: int, scope: Scope, body: list[Any]) -> Event:
    return SessionMark(event_id, scope, at, _text(body[0]), json.loads(body[1]))


_READERS: dict[int, Callable[[bytes, int, Scope, list[Any]], Event]] = {
    1: _turn, 2: _memory_write, 3: _deletion, 4: _edit, 5: _forget, 6: _session_mark,
}


def decode_event(event_id: bytes, at: int, kind: int, payload: bytes | None) -> Event:
    """The event of a row of the log.  Fields that a newer minor version appended are ignored.

    Raises :class:`StoreTooNew` for an unknown version or kind, :class:`StoreCorrupt` for bytes that are no payload.
    """
    if not payload:
        return Erased(event_id, at)
    try:
        fields = _decode(payload)
        version = fields[0]
        user, session, agent, workspace, platform = map(_text, fields[1:6])
        reader = _READERS.get(kind)
        if version != PAYLOAD_VERSION or reader is None:
            raise StoreTooNew("the log holds an event of a newer memoryd: upgrade memoryd")
        return reader(event_id, at, Scope(None, user, session, agent, workspace, platform), fields[6:])
    except (msgspec.DecodeError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise StoreCorrupt("the log holds a payload that cannot be read; run 'memoryd status'") from error
