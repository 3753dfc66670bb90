"""Memories and checkpoints as resources: what can be attached to a conversation by hand.  No SDK in here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote, unquote

import attrs

from memoryd.core import Value
from memoryd.runtime import Runtime
from memoryd_mcp._tools import read_rows
from memoryd_mcp._values import checkpoint_json, json_of, memory_json

__all__ = ["TEMPLATES", "Listed", "list_resources", "read_resource"]

_MEMORY, _CHECKPOINT = "memoryd://memory/", "memoryd://checkpoint/"
_LISTED = 100


@attrs.frozen(slots=True, eq=False, repr=False)
class Listed(Value):
    """A resource, or with ``{}`` in its address a kind of them."""

    uri: str
    name: str
    about: str


TEMPLATES = (
    Listed(_MEMORY + "{key}", "memory", "A fact by its key"),
    Listed(_CHECKPOINT + "{id}", "checkpoint", "The first rows of an archived transcript"),
)
_LISTS = (
    Listed("memoryd://memories", "memories", "All facts, newest first"),
    Listed("memoryd://checkpoints", "checkpoints", "Archived transcripts, newest first"),
)


async def list_resources(runtime: Runtime) -> Sequence[Listed]:
    """The two lists, and the newest of what they hold."""
    memories = await runtime.list_memories(_LISTED)
    checkpoints = await runtime.checkpoints(limit=_LISTED)
    return (
        *_LISTS,
        *(Listed(_MEMORY + quote(json_of(memory.key), safe=""), json_of(memory.key), f"A fact ({memory.type})") for memory in memories),
        *(Listed(_CHECKPOINT + one.id, f"checkpoint {one.id[:16]}", f"{one.count} messages of a session") for one in checkpoints),
    )


async def read_resource(runtime: Runtime, uri: str) -> str | None:
    """The resource as JSON text; None where there is none.  Raises what reading raises."""
    if uri == "memoryd://memories":
        return _json([memory_json(memory) for memory in await runtime.list_memories()])
    if uri == "memoryd://checkpoints":
        return _json([checkpoint_json(one) for one in await runtime.checkpoints()])
    if uri.startswith(_MEMORY):
        memory = await runtime.retrieve(unquote(uri.removeprefix(_MEMORY)))
        return None if memory is None else _json(memory_json(memory))
    if uri.startswith(_CHECKPOINT):
        return _json(await read_rows(runtime, uri.removeprefix(_CHECKPOINT), 0, 200))
    return None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
