"""The tool ``memory_backend``: its schema, its description and its handler, one for every host that gives it to a model.

    answer = tool.call({"action": "store", "key": "city", "value": "Oslo"}, memory)     # {"success": True, "ok": True, "key": "city"}

A call never raises: whatever is wrong with it is in the answer's ``error``.  docs/reference/tool.md has every call and answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from memoryd.blocking import Memory, MemoryBackend
from memoryd.core import Memory as MemoryValue
from memoryd.core import check_name, check_text, checked_metadata, current_scope
from memoryd.errors import InvalidInput, MemorydError

__all__ = ["ACTIONS", "DESCRIPTION", "NAME", "SCHEMA", "call", "failed"]

Answer: TypeAlias = dict[str, Any]

NAME = "memory_backend"
DESCRIPTION = (
    "Long-term memory of facts about the user, kept under keys. "
    "store: keep a value under a key, replacing an earlier one. retrieve: the value of a key. "
    "query: facts whose key or value contains a text. list: all keys. delete: a key. "
    "info: where memory is kept. evaluate: measure the memory backends that could be used."
)
ACTIONS = ("store", "retrieve", "query", "list", "delete", "info", "evaluate")
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do."},
        "user_id": {"type": "string", "description": "Whose memory; leave it out for the current user."},
        "key": {"type": "string", "description": "Name of the fact: for store, retrieve and delete."},
        "value": {"type": "string", "description": "The fact itself: for store."},
        "query_text": {"type": "string", "description": "Text to look for in keys and values, any case: for query."},
        "metadata": {"type": "object", "description": "Anything to keep beside the value; its 'type' is the kind of fact: for store."},
    },
    "required": ["action"],
}
_ALIASES = {"user_id": "uid", "query_text": "query", "metadata": "meta"}
_ACTION_ALIASES = {"get": "retrieve"}
_SHOWN = 80  # characters of an unknown action that an answer repeats


def call(arguments: object, memory: Memory, *, default_user: str | None = None) -> Answer:
    """The answer to one call, as JSON values.  The scope's user is bound: another one is refused unless ``tool.cross_user``.

    ``default_user`` is for hosts of a single user, where no scope binds one.  ``evaluate`` takes seconds and runs a loop of its own:
    call it in a plain thread.
    """
    try:
        return _handled(arguments, memory, default_user)
    except InvalidInput as error:
        return failed(str(error))
    except MemorydError as error:
        return failed(" ".join(str(error).split()))
    except Exception as error:  # noqa: BLE001 - the edge to a host's turn, which no memory may break; a message may hold a user's text
        return failed(f"internal error: {type(error).__name__}")


def failed(error: str) -> Answer:
    """The answer of a call that was not done."""
    return {"success": False, "ok": False, "error": error}


def _done(**fields: Any) -> Answer:
    return {"success": True, "ok": True, **fields}


def _handled(arguments: object, memory: Memory, default_user: str | None) -> Answer:
    if not isinstance(arguments, Mapping):
        return failed("expected an object with the parameters of the call")
    given = {name: _given(arguments, name) for name in SCHEMA["properties"]}
    action = check_text("action", given["action"] if given["action"] is not None else "")
    action = _ACTION_ALIASES.get(action, action)
    if action not in _DO:
        return failed(f"Unknown action '{action[:_SHOWN]}'. Use: {', '.join(ACTIONS)}")
    user = _user(given["user_id"], memory, default_user)
    if isinstance(user, dict):
        return user
    return _DO[action](_Call(user, given, memory))


def _given(arguments: Mapping[str, Any], name: str) -> Any:
    """A parameter by its name or its short one; null counts as absent."""
    value = arguments.get(name)
    return value if value is not None or name not in _ALIASES else arguments.get(_ALIASES[name])


def _user(given: Any, memory: Memory, default_user: str | None) -> str | Answer:
    """Whose memory the call is about, or why it is refused."""
    bound = current_scope().user
    user = given if given is not None else bound if bound is not None else default_user
    if user is None:
        return failed("user_id is required.")
    if bound is not None and check_name("user_id", user) != bound and not memory.config.tool.cross_user:
        return failed("user_id names another user than the host's, which is refused (tool.cross_user = false).")
    return check_name("user_id", user)


@attrs.frozen(slots=True)
class _Call:
    """A call whose action and user are settled."""

    user: str
    given: Mapping[str, Any] = attrs.field(repr=False)
    memory: Memory

    @property
    def backend(self) -> MemoryBackend:
        return MemoryBackend(self.memory)

    @property
    def key(self) -> str:
        """The key, or an empty text."""
        return "" if self.given["key"] is None else check_text("key", self.given["key"])


def _store(asked: _Call) -> Answer:
    key, value = asked.key, asked.given["value"]
    if not key or value is None:
        return failed("key and value are required for 'store'.")
    if not asked.backend.store(asked.user, key, value, checked_metadata(asked.given["metadata"])):
        return failed("Nothing was stored: memory is off here (null backend or private session).")
    return _done(key=key)


def _retrieve(asked: _Call) -> Answer:
    if not (key := asked.key):
        return failed("key is required for 'retrieve'.")
    memory = asked.backend.retrieve(asked.user, key)
    if memory is None:
        return failed(f"No memory found for key '{key}'.")
    times = {"created_at": memory.created_at.isoformat(), "updated_at": memory.updated_at.isoformat()}
    return _done(**_shown(memory), **times)


def _query(asked: _Call) -> Answer:
    if not (text := check_text("query_text", asked.given["query_text"] or "")):
        return failed("query_text is required for 'query'.")
    found = [_shown(memory) for memory in asked.backend.query(asked.user, text)]
    return _done(results=found, count=len(found))


def _list(asked: _Call) -> Answer:
    found = asked.backend.list_memories(asked.user)
    entries = [{"key": memory.key, "type": memory.type} for memory in found]
    return _done(keys=[memory.key for memory in found], entries=entries, count=len(found))


def _delete(asked: _Call) -> Answer:
    if not (key := asked.key):
        return failed("key is required for 'delete'.")
    if not asked.backend.delete(asked.user, key):
        return failed("Nothing was deleted: memory is off here (private session).")
    return _done(key=key)


def _info(asked: _Call) -> Answer:
    backend = asked.backend
    return _done(backend=asked.memory.backend.name, is_cloud=backend.is_cloud, cloud=backend.is_cloud, available=backend.is_available())


def _evaluate(asked: _Call) -> Answer:
    from memoryd.evaluate import evaluate  # seldom asked for

    memory = asked.memory
    return _done(**evaluate(home=memory.home, profile=memory.profile, config=memory.config))


def _shown(memory: MemoryValue) -> dict[str, Any]:
    return {"key": memory.key, "value": memory.value, "type": memory.type, "metadata": dict(memory.metadata)}


_DO: Mapping[str, Callable[[_Call], Answer]] = {
    "store": _store,
    "retrieve": _retrieve,
    "query": _query,
    "list": _list,
    "delete": _delete,
    "info": _info,
    "evaluate": _evaluate,
}
