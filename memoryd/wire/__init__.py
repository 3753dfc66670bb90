"""The protocol between clients and the daemon, without I/O: bytes in, events out.  docs/reference/wire.md is drawn from its tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.wire._hook import HookCall as HookCall
    from memoryd.wire._hook import HookCallReader as HookCallReader
    from memoryd.wire._hook import HookReply as HookReply
    from memoryd.wire._hook import HookReplyReader as HookReplyReader

_HOMES = {
    "HookCall": "_hook",
    "HookCallReader": "_hook",
    "HookReply": "_hook",
    "HookReplyReader": "_hook",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd.wire' has no attribute {name!r}")
    value = getattr(import_module(f"memoryd.wire.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
