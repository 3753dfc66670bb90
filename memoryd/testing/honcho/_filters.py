"""Honcho's filter language over what the stand-in keeps, with its traps: ``*`` means everything, a field named like an operator is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["BadFilter", "FilterFault", "check", "matches"]

_COLUMNS = {
    "Workspace": {"id", "created_at", "metadata"},
    "Peer": {"id", "created_at", "metadata"},
    "Session": {"id", "created_at", "is_active", "metadata"},
    "Message": {"session_id", "peer_id", "token_count", "created_at", "metadata", "workspace_id"},
    "Conclusion": {"id", "content", "level", "session_id", "observer_id", "observed_id", "created_at"},
}
_NUMERIC = {"gt", "gte", "lt", "lte"}
_DEEPEST = 5


class BadFilter(Exception):
    """422: a column or an operator that there is not."""


class FilterFault(Exception):
    """500: the database cannot compare these values."""


def matches(thing: Mapping[str, Any], filters: Mapping[str, Any] | None) -> bool:
    """Whether ``thing`` (an answer's fields) is meant by ``filters``, which were checked."""
    return all(_clause(thing, name, value) for name, value in (filters or {}).items())


def check(kind: str, filters: Mapping[str, Any] | None, depth: int = 0) -> None:
    """Raise :class:`BadFilter` for a filter that means nothing; the server says so also where there is nothing to filter."""
    if depth > _DEEPEST:
        raise BadFilter("nested too deeply")
    for name, value in (filters or {}).items():
        if name in ("AND", "OR", "NOT"):
            if not isinstance(value, list):
                raise BadFilter(name)
            for part in value:
                check(kind, part, depth + 1)
        elif name not in _COLUMNS[kind]:
            raise BadFilter(name)


def _clause(thing: Mapping[str, Any], name: str, value: Any) -> bool:
    if name in ("AND", "OR", "NOT"):
        parts = (matches(thing, part) for part in value)
        return all(parts) if name == "AND" else any(parts) if name == "OR" else not any(parts)
    if name == "metadata":
        return value == "*" or _metadata(thing.get("metadata") or {}, value)
    return _compared(thing.get(name), value)


def _metadata(metadata: Mapping[str, Any], wanted: Any) -> bool:
    if not isinstance(wanted, dict):
        raise BadFilter("metadata")
    return all(_compared(metadata.get(name), value, there=name in metadata) for name, value in wanted.items())


def _compared(have: Any, wanted: Any, *, there: bool = True) -> bool:
    if wanted == "*":
        return True
    if isinstance(wanted, dict) and wanted and set(wanted) <= set(_OPERATORS):
        return there and all(_operate(name, have, value) for name, value in wanted.items())
    if isinstance(wanted, dict):
        return isinstance(have, dict) and all(_compared(have.get(name), value, there=name in have) for name, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(have, list) and all(item in have for item in wanted)
    return there and type(have) is type(wanted) and bool(have == wanted)


def _operate(name: str, have: Any, value: Any) -> bool:
    if value == "*":
        return True
    if name in _NUMERIC and isinstance(value, (int, float)) and not isinstance(have, (int, float)):
        raise FilterFault(name)
    try:
        return _OPERATORS[name](have, value)
    except TypeError:
        raise BadFilter(name) from None


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda have, value: bool(have == value),
    "ne": lambda have, value: bool(have != value),
    "gt": lambda have, value: bool(have > value),
    "gte": lambda have, value: bool(have >= value),
    "lt": lambda have, value: bool(have < value),
    "lte": lambda have, value: bool(have <= value),
    "in": lambda have, value: have in value,
    "contains": lambda have, value: str(value).casefold() in str(have).casefold(),
    "icontains": lambda have, value: str(value).casefold() in str(have).casefold(),
}
