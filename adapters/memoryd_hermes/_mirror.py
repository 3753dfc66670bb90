"""What the host's own memory tool writes, as memories: an entry keeps its key while it is edited, so that the old value is superseded.

The host's entries have no names.  One is found by its whole former text where the host tells it, else by a part of it that only one
entry has; where that is in doubt nothing is replaced or removed: the new text is added, and the old one stays until it is named better.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from memoryd.blocking import Memory
from memoryd.core import Memory as MemoryValue
from memoryd_hermes._echo import spoken

__all__ = ["mirror"]

_TOLD = ("write_origin", "session_id", "tool_name", "execution_context")
_CHANGES = ("replace", "patch")


def mirror(memory: Memory, action: str, target: str, content: object, metadata: Mapping[str, Any]) -> str:
    """Do to ``memory`` what the host did to its own file.  Returns what was done: added, known, replaced, removed, in-doubt, off.

    Takes the scope of its context.  Raises what storing raises.
    """
    kind, text = target or "memory", spoken(content).strip()
    if action == "add":
        return _add(memory, kind, text, metadata)
    before = _before(memory, kind, metadata, text if action == "remove" else "")
    if action == "remove":
        return _done(memory.delete(before.key).accepted.state, "removed") if before is not None else "in-doubt"
    if action not in _CHANGES or not text:
        return "off"
    if before is None:
        return "known" if _add(memory, kind, text, metadata) == "known" else "in-doubt"
    return _done(memory.store(before.key, text, _kept(kind, metadata)).accepted.state, "replaced")


def _done(state: str, word: str) -> str:
    return "off" if state == "off" else word


def _add(memory: Memory, kind: str, text: str, metadata: Mapping[str, Any]) -> str:
    if not text:
        return "off"
    current = {found.key: found.value for found in _entries(memory, kind)}
    if text in current.values():
        return "known"
    key = name = f"hermes:{kind}:{hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
    number = 1
    while key in current:  # an entry that began with these words and says something else now
        number += 1
        key = f"{name}-{number}"
    return _done(memory.store(key, text, _kept(kind, metadata)).accepted.state, "added")


def _kept(kind: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: metadata[name] for name in _TOLD if isinstance(metadata.get(name), str)}
    return {"type": kind, "source": "hermes", **told}


def _entries(memory: Memory, kind: str) -> list[MemoryValue]:
    return [found for found in memory.list_memories() if found.key.startswith(f"hermes:{kind}:")]


def _before(memory: Memory, kind: str, metadata: Mapping[str, Any], removed: str) -> MemoryValue | None:
    """The entry that a change is about, or None where none or several could be meant."""
    entries = _entries(memory, kind)
    whole = spoken(metadata.get("previous_content")).strip() or removed
    same = [found for found in entries if whole and found.value.strip() == whole]
    part = spoken(metadata.get("old_text")).strip()
    if same or not part or metadata.get("previous_content"):
        return same[0] if same else None
    like = [found for found in entries if part in found.value]
    return like[0] if len(like) == 1 else next((found for found in like if found.value.strip() == part), None)
