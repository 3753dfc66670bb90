"""What of a host's message list belongs to the turn that just ended: ids and the kinds of non-text parts.  Pure; nothing is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memoryd.core import MAX_NAME
from memoryd.errors import InvalidInput

__all__ = ["turn_marks"]

_ID_KEYS = ("message_uid", "uuid", "id")
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
_MAX_MARKS = 64


def turn_marks(messages: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """``(message_ids, parts)`` of the last turn in ``messages``: from the last user row to the end.

    Rows that are no mappings are passed over.  Raises :class:`InvalidInput` where ``messages`` is no list.
    """
    if messages is None:
        return (), ()
    if isinstance(messages, (str, bytes)) or not isinstance(messages, Sequence):
        raise InvalidInput("messages", f"expected a list of messages, got {type(messages).__name__}")
    ids: list[str] = []
    parts: list[str] = []
    for row in reversed(messages[-_MAX_MARKS:]):
        if not isinstance(row, Mapping):
            continue
        ids.extend(_ids(row))
        parts.extend(_part_kinds(row.get("content")))
        if row.get("role") == "user":
            break
    return tuple(reversed(ids)), tuple(dict.fromkeys(reversed(parts[:_MAX_MARKS])))


def _ids(row: Mapping[str, object]) -> list[str]:
    for key in _ID_KEYS:
        value = row.get(key)
        if isinstance(value, str) and 0 < len(value) <= MAX_NAME:
            return [value]
    return []


def _part_kinds(content: object) -> list[str]:
    if not isinstance(content, list):
        return []
    kinds = (part.get("type") for part in content if isinstance(part, Mapping))
    return [kind[:64] for kind in kinds if isinstance(kind, str) and kind not in _TEXT_PARTS]
