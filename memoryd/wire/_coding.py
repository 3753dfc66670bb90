"""JSON by msgspec, for the daemon and the trio client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from memoryd import core
from memoryd.errors import MemorydError, ProtocolError

__all__ = ["Message", "decode", "dump", "has_tags", "load", "make_record", "to_message"]

dump = msgspec.json.Encoder().encode
load = msgspec.json.Decoder().decode


class Message(msgspec.Struct, gc=False):
    """A request or notification of JSON-RPC 2.0."""

    jsonrpc: Literal["2.0"]
    method: str
    params: dict[str, Any] = {}
    id: int | str | UnsetType | None = UNSET


_read = msgspec.json.Decoder(Message).decode


def decode(line: bytes) -> Any:
    """One line as JSON values.  Raises :class:`ProtocolError` for what is no JSON.

    A half surrogate pair as an escape, which strict decoders refuse, is taken as Python's own encoder writes it.
    """
    try:
        return load(line)
    except RecursionError:
        raise ProtocolError("a frame is nested too deeply") from None
    except (msgspec.MsgspecError, ValueError):
        if b"\\ud" not in line and b"\\uD" not in line:
            raise ProtocolError("a frame is not JSON in UTF-8") from None
    try:
        return json.loads(line, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise ProtocolError("a frame is not JSON in UTF-8") from None


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def read_message(line: bytes) -> Message | None:
    """The message of a line in one go, or None where that takes a closer look."""
    try:
        return _read(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def to_message(data: Any) -> Message:
    """JSON values as a message.  Raises :class:`ProtocolError` saying what is not as JSON-RPC 2.0 has it."""
    try:
        message = msgspec.convert(data, Message)
        if isinstance(message.id, str):
            message.id.encode()  # it has to be written in the answer
        return message
    except UnicodeEncodeError:
        raise ProtocolError("an id or method holds half a surrogate pair") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ProtocolError(f"no request of JSON-RPC 2.0 with params by name: {_without_values(str(error))}") from None


def _without_values(problem: str) -> str:
    """msgspec quotes an enumeration's wrong value, which is the caller's text."""
    head, _, path = problem.partition(" - at ")
    return f"{head.split(' ')[0]} at {path}" if "value" in head else problem


def has_tags(line: bytes) -> bool:
    """Whether a line may hold values that JSON has not: only then they are looked for."""
    return b'"$' in line or b"\\u0024" in line


@cache
def _record_class(name: str) -> tuple[type[Any], frozenset[str]]:
    found = getattr(core, name, None)
    if not isinstance(found, type) or not issubclass(found, core.Value):
        raise ProtocolError("a record of a class that this version does not know")
    return found, frozenset(field.name for field in found.__attrs_attrs__)  # type: ignore[attr-defined]  # attrs puts it there


def make_record(name: str, fields: Mapping[str, Any]) -> Any:
    """A value of :mod:`memoryd.core`; fields of a newer version are left out.  Raises :class:`ProtocolError`."""
    kind, known = _record_class(name[:100])
    try:
        return kind(**{field: value for field, value in fields.items() if field in known})
    except (TypeError, ValueError, MemorydError) as error:
        raise ProtocolError(f"a {name} that lacks a field or has a wrong one") from error
