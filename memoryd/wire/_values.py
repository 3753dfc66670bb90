"""Values as JSON and back, exactly.

JSON has no times, bytes, sets or tuples, no NaN, and no text with half a surrogate pair; it has keys of text only.  What it lacks
travels as an object with one key that begins with ``$`` (a table in docs/reference/wire.md is drawn from :data:`TAGS`).  A mapping that
has such a key of its own travels as its pairs.  This module needs the standard library only.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any, TypeAlias

from memoryd.errors import InvalidInput, ProtocolError

__all__ = ["MAX_DEPTH", "TAGS", "MakeRecord", "Odd", "pack", "pack_rows", "unpack"]

MAX_DEPTH = 100
MakeRecord: TypeAlias = Callable[[str, Mapping[str, Any]], Any]
"""``make(name, fields)`` builds a record; a field that it does not know comes from a newer memoryd and is left out."""

# tag -> what it stands for
TAGS: Mapping[str, str] = {
    "$": 'a record: its class, and its fields beside it: `{"$": "Accepted", "state": "journaled", ...}`',
    "$time": "a time, ISO 8601: with zone where it has one",
    "$bytes": "bytes, base64",
    "$text": "text that UTF-8 cannot hold: base64 of its UTF-8 with surrogates passed",
    "$float": "`nan`, `inf` or `-inf`",
    "$map": "a mapping, as an array of pairs: its keys are no text, or one begins with `$`",
    "$tuple": "a tuple (arrays directly in a record are tuples without it)",
    "$set": "a set of texts, sorted",
    "$path": "the path of a file",
    "$odd": "`[type, text]`: what JSON cannot hold, by the name of its type and its readable text",
}
_MAX_ODD = 1 << 20


class Odd:
    """Stands for a caller's value that JSON cannot hold: same name of type, same readable text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


# -- to JSON ----------------------------------------------------------------------------------------------------------------


def pack(value: Any, depth: int = 0) -> Any:
    """``value`` as what any JSON encoder can write.  Raises :class:`InvalidInput` for what is nested too deeply."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _pack_text(value)
    if value is None or kind is int or kind is bool:
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if depth > MAX_DEPTH:
        raise InvalidInput("value", f"is nested deeper than {MAX_DEPTH} levels")
    if kind is dict:
        return _pack_mapping(value, depth + 1)
    if kind is list:
        return [pack(item, depth + 1) for item in value]
    fields = getattr(kind, "__attrs_attrs__", None)
    if fields is not None and kind.__module__.startswith("memoryd."):
        return _pack_record(kind.__name__, {field.name: getattr(value, field.name) for field in fields}, depth)
    if isinstance(value, SimpleNamespace) and kind.__module__ == "memoryd.client._records":  # a result of the blocking client, given back
        return _pack_record(kind.__name__, vars(value), depth)
    return _pack_rare(value, depth)


def _pack_record(name: str, fields: Mapping[str, Any], depth: int) -> Any:
    record: dict[str, Any] = {"$": name}
    for field, item in fields.items():
        record[field] = [pack(one, depth + 1) for one in item] if type(item) is tuple else pack(item, depth + 1)
    return record


def pack_rows(rows: Any) -> Any:
    """A host's list of messages: a row that cannot be packed is one odd row, never an error for the others."""
    return [_pack_row(row) for row in rows] if type(rows) in (list, tuple) else pack(rows)


def _pack_row(row: Any) -> Any:
    try:
        return pack(row)
    except (InvalidInput, RecursionError):
        return _odd(row)


def _pack_text(text: str) -> Any:
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"$text": _base64(text.encode("utf-8", "surrogatepass"))}
    return text


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _pack_mapping(value: Mapping[Any, Any], depth: int) -> Any:
    packed = {}
    for key, item in value.items():
        if type(key) is not str or key[:1] == "$" or (not key.isascii() and type(_pack_text(key)) is dict):
            return {"$map": [[pack(name, depth + 1), pack(one, depth + 1)] for name, one in value.items()]}
        packed[key] = pack(item, depth)
    return packed


def _pack_rare(value: Any, depth: int) -> Any:
    match value:
        case bytes() | bytearray():
            return {"$bytes": _base64(bytes(value))}
        case datetime():
            return {"$time": value.isoformat()}
        case tuple():
            return {"$tuple": [pack(item, depth + 1) for item in value]}
        case set() | frozenset() if all(type(item) is str for item in value):
            return {"$set": [pack(item) for item in sorted(value)]}
        case PurePath():
            return {"$path": pack(str(value))}
        case str():  # subclasses of what JSON has, enumerations of it too
            return _pack_text(str.__str__(value))
        case int():
            return int(value)
        case float():
            return pack(float(value))
        case Mapping():
            return _pack_mapping(value, depth + 1)
        case list():
            return [pack(item, depth + 1) for item in value]
        case _:
            return _odd(value)


def _odd(value: Any) -> Any:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  a foreign object's repr may raise anything
        text = f"<{type(value).__name__}: repr raised {type(error).__name__}>"
    if len(text) > _MAX_ODD:
        text = f"{text[:_MAX_ODD]}... ({len(text)} characters)"
    return {"$odd": [_pack_text(type(value).__name__), _pack_text(text)]}


# -- from JSON --------------------------------------------------------------------------------------------------------------


def unpack(data: Any, make: MakeRecord, depth: int = 0) -> Any:
    """What :func:`pack` made, again.  Raises :class:`ProtocolError` for an object with a tag that holds something else."""
    kind = type(data)
    if kind is dict:
        return _unpack_object(data, make, depth)
    if kind is list:
        if depth > 4 * MAX_DEPTH:
            raise ProtocolError("a value is nested too deeply")
        return [unpack(item, make, depth + 1) for item in data]
    return data


def _unpack_object(data: dict[str, Any], make: MakeRecord, depth: int) -> Any:
    if depth > 4 * MAX_DEPTH:
        raise ProtocolError("a value is nested too deeply")
    if "$" in data:
        return _unpack_record(data, make, depth)
    if len(data) == 1:
        [(tag, held)] = data.items()
        reader = _READERS.get(tag)
        if reader is not None:
            try:
                return reader(held, lambda item: unpack(item, make, depth + 1))
            except (TypeError, ValueError, AttributeError) as error:
                raise ProtocolError(f"a value with the tag {tag} holds something else") from error
    return {key: unpack(item, make, depth + 1) for key, item in data.items()}


def _unpack_record(data: dict[str, Any], make: MakeRecord, depth: int) -> Any:
    name = data["$"]
    if type(name) is not str:
        raise ProtocolError("a record without the name of its class")
    fields = {}
    for key, item in data.items():
        if key != "$":
            one = unpack(item, make, depth + 1)
            fields[key] = tuple(one) if type(item) is list else one
    return make(name, fields)


def _text(held: Any, again: Callable[[Any], Any]) -> str:
    text = again(held)
    if type(text) is not str:
        raise TypeError("expected text")
    return text


def _odd_again(held: Any, again: Callable[[Any], Any]) -> Odd:
    name, text = (_text(part, again) for part in held)
    kind: type[Odd] = type(name.replace("\0", "?").encode("utf-8", "replace").decode(), (Odd,), {"__slots__": ()})
    return kind(text)


_READERS: Mapping[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "$time": lambda held, again: datetime.fromisoformat(held),
    "$bytes": lambda held, again: b64decode(held, validate=True),
    "$text": lambda held, again: b64decode(held, validate=True).decode("utf-8", "surrogatepass"),
    "$float": lambda held, again: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}.get(held) or _wrong(),
    "$map": lambda held, again: {again(key): again(item) for key, item in held},
    "$tuple": lambda held, again: tuple([again(item) for item in _list(held)]),
    "$set": lambda held, again: frozenset([_text(item, again) for item in _list(held)]),
    "$path": lambda held, again: PurePath(_text(held, again)),
    "$odd": _odd_again,
}


def _list(held: Any) -> list[Any]:
    return held if type(held) is list else _wrong()


def _wrong() -> Any:
    raise TypeError("not what the tag says")
