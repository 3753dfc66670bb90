"""What tools answer, as JSON values that any client can read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs

from memoryd.core import CheckpointInfo, Hit, Memory, MemoryVersion
from memoryd.recall import cut_end

__all__ = ["checkpoint_json", "hit_json", "json_of", "memory_json", "version_json"]

Json = dict[str, Any]
_SHOWN = 2000  # characters of one text in a list; memory_get has the whole


def json_of(value: Any) -> Any:
    """Values of memoryd by field name, times as ISO 8601, without what UTF-8 cannot hold."""
    if attrs.has(type(value)):
        return {field.name: json_of(getattr(value, field.name)) for field in attrs.fields(type(value))}
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
        case datetime():
            return value.isoformat()
        case Mapping():
            return {json_of(str(key)): json_of(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [json_of(item) for item in value]
        case bytes():
            return value.hex()
        case _:
            return value


def _without_none(**fields: Any) -> Json:
    return {name: json_of(value) for name, value in fields.items() if value is not None}


def hit_json(hit: Hit, *, whole: bool = False) -> Json:
    text = hit.text if whole or len(hit.text) <= _SHOWN else cut_end(hit.text, _SHOWN)
    return _without_none(
        id=hit.id, kind=hit.kind, text=text, cut=True if len(text) < len(hit.text) else None, at=hit.at, role=hit.role, key=hit.key,
        session=hit.session, source=hit.source, superseded=hit.superseded or None, valid_until=hit.valid_until, score=round(hit.score, 4),
    )  # fmt: skip


def memory_json(memory: Memory) -> Json:
    return _without_none(
        id=memory.id, kind="memory", key=memory.key, text=memory.value, type=memory.type, at=memory.updated_at,
        created_at=memory.created_at, metadata=memory.metadata or None,
    )  # fmt: skip


def version_json(version: MemoryVersion) -> Json:
    return _without_none(
        id=version.event_id, kind="memory", key=version.key, text=version.value, at=version.valid_from, valid_until=version.valid_until
    )


def checkpoint_json(found: CheckpointInfo) -> Json:
    last = found.attempts[-1] if found.attempts else None
    return _without_none(
        id=found.id, session=found.session, messages=found.count, rows=last and last.rows, at=last and last.at, host=last and last.host,
        trigger=last and last.trigger,
    )  # fmt: skip
