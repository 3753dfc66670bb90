"""What of a turn's arguments has to travel.  Standard library only."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["scope_now", "turn_arguments", "without_texts"]

_ROWS = 64
_KEYS = ("message_uid", "uuid", "id", "role")


def turn_arguments(user: Any, assistant: Any, messages: Any, turn_id: Any, created_at: Any) -> dict[str, Any]:
    """The arguments of ``sync_turn``, those that are None left out."""
    rest = {"messages": without_texts(messages), "turn_id": turn_id, "created_at": created_at}
    return {"user": user, "assistant": assistant} | {name: value for name, value in rest.items() if value is not None}


def without_texts(messages: Any) -> Any:
    """Of a host's message list the rows of the last turn, with ids, roles and kinds of parts: what a turn takes of them."""
    if not isinstance(messages, (list, tuple)):
        return messages
    kept: list[Any] = []
    for row in reversed(messages[-_ROWS:]):
        if isinstance(row, Mapping):
            kept.append(_row(row))
            if row.get("role") == "user":
                break
    return kept[::-1]


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: row[key] for key in _KEYS if isinstance(row.get(key), str)}
    content = row.get("content")
    if isinstance(content, list):
        found["content"] = [{"type": part.get("type")} for part in content if isinstance(part, Mapping)]
    return found


def scope_now(own: Mapping[str, Any]) -> dict[str, Any]:
    """The scope of the calling context: ``own`` over what ``with memoryd.scope(...)`` says, where that was ever used."""
    core = sys.modules.get("memoryd.core._scope")
    if core is None:
        return dict(own)
    current = core.current_scope()
    outer = {name: value for name in current.__slots__ if not name.startswith("_") and (value := getattr(current, name)) is not None}
    return {**outer, **own}
