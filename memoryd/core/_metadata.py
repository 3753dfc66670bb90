"""Metadata: a JSON object that a caller attaches.  Checked once, at the door."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from memoryd.errors import InvalidInput

__all__ = ["MAX_DEPTH", "checked_metadata"]

MAX_DEPTH = 64


def checked_metadata(value: object) -> dict[str, Any]:
    """A deep copy of ``value`` as a JSON object with text keys, at most :data:`MAX_DEPTH` levels, no NaN or infinity.

    Raises :class:`InvalidInput` naming the offending path; the caller's object is never kept or changed.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput("metadata", f"expected a mapping, got {type(value).__name__}")
    copied = _copy(value, "metadata", 0)
    assert isinstance(copied, dict)
    return copied


def _copy(value: object, path: str, depth: int) -> object:
    if depth > MAX_DEPTH:
        raise InvalidInput("metadata", f"is nested deeper than {MAX_DEPTH} levels")
    match value:
        case None | bool() | str():
            return value
        case int():
            return _checked_int(value, path)
        case float():
            if not math.isfinite(value):
                raise InvalidInput(path, "is not a finite number, which JSON cannot hold")
            return value
        case Mapping():
            return {_checked_key(k, path): _copy(v, f"{path}.{str(k)[:40]}", depth + 1) for k, v in value.items()}
        case list() | tuple():
            return [_copy(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
        case _:
            raise InvalidInput(path, f"holds a {type(value).__name__}, which JSON cannot hold")


def _checked_int(value: int, path: str) -> int:
    try:
        json.dumps(value)
    except ValueError:
        raise InvalidInput(path, "is an integer with too many digits") from None
    return value


def _checked_key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise InvalidInput(path, f"has a key of type {type(key).__name__}; JSON keys are text")
    return key
