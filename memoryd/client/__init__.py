"""Talks to the daemon: :class:`Client` for trio, :mod:`memoryd.client.blocking` for threads (standard library only).

Both have the methods of :class:`memoryd.Runtime` with the same signatures.  docs/reference/python.md says what a call means while the
daemon is away.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.client._attempts import AWAY as AWAY
    from memoryd.client._attempts import Attempts as Attempts
    from memoryd.client._line import Held as Held
    from memoryd.client._trio import Client as Client

_HOMES = {
    "AWAY": "_attempts",
    "Attempts": "_attempts",
    "Held": "_line",
    "Client": "_trio",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd.client' has no attribute {name!r}")
    value = getattr(import_module(f"memoryd.client.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
