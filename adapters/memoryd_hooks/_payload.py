"""Reading of payloads and records that may be anything: what is not as expected counts as not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from memoryd.core import row_text, to_micros

__all__ = ["at_of", "mapping", "paths_in", "text_of", "transcript_in", "why_in", "word"]

_PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "workdir")


def word(source: Mapping[str, Any], name: str) -> str:
    """The text under ``name``, or an empty one."""
    value = source.get(name)
    return value if isinstance(value, str) else ""


def mapping(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = source.get(name)
    return value if isinstance(value, dict) else {}


def transcript_in(payload: Mapping[str, Any]) -> tuple[str | None, str]:
    """(path, problem): None is a host that keeps no transcript, by its own setting."""
    if "transcript_path" in payload and payload["transcript_path"] is None:
        return None, ""
    path = word(payload, "transcript_path")
    return path, "" if path else "the payload gives no transcript_path"


def why_in(payload: Mapping[str, Any]) -> str:
    """What set the event off, under the name that it has there."""
    return word(payload, "trigger") or word(payload, "source") or word(payload, "reason")


def text_of(content: object) -> str:
    return row_text(content)


def at_of(stamp: object) -> int | None:
    """An ISO 8601 time in microseconds since the epoch; a naive one is UTC."""
    if not isinstance(stamp, str):
        return None
    try:
        time = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return to_micros(time if time.tzinfo is not None else time.replace(tzinfo=UTC))


def paths_in(arguments: object) -> Iterator[str]:
    """Paths of files that a tool was called with."""
    if isinstance(arguments, dict):
        for name in _PATH_KEYS:
            value = arguments.get(name)
            if isinstance(value, str) and value and "\n" not in value:
                yield value
