"""memoryd: the durable, non-blocking memory runtime between any agent host and any memory backend.

    async with memoryd.open_runtime() as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("I live in Turin", "Noted.")
            print(await rt.recall("where do I live?"))

Importing this package loads nothing heavy and changes nothing in its host: the public names load when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from memoryd.connect import connect as connect
    from memoryd.core import Accepted as Accepted
    from memoryd.core import Config as Config
    from memoryd.core import Context as Context
    from memoryd.core import Drained as Drained
    from memoryd.core import Forgotten as Forgotten
    from memoryd.core import Hit as Hit
    from memoryd.core import Memory as Memory
    from memoryd.core import MemoryVersion as MemoryVersion
    from memoryd.core import Recall as Recall
    from memoryd.core import Receipt as Receipt
    from memoryd.core import Restored as Restored
    from memoryd.core import Scope as Scope
    from memoryd.core import Status as Status
    from memoryd.core import Stored as Stored
    from memoryd.core import Verification as Verification
    from memoryd.core import current_scope as current_scope
    from memoryd.core import scope as scope
    from memoryd.runtime import Runtime as Runtime
    from memoryd.runtime import open_runtime as open_runtime

_DOORS = {
    "memoryd.connect": ("connect",),
    "memoryd.core": (
        "Accepted", "Config", "Context", "Drained", "Forgotten", "Hit", "Memory", "MemoryVersion", "Recall", "Receipt",
        "Restored", "Scope", "Status", "Stored", "Verification", "current_scope", "scope",
    ),
    "memoryd.runtime": ("Runtime", "open_runtime"),
}  # fmt: skip
_HOMES = {name: module for module, names in _DOORS.items() for name in names}
_MODULES = ("aio", "blocking", "client", "errors", "evaluate", "testing", "tool")

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"memoryd.{name}")
    raise AttributeError(f"module 'memoryd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
