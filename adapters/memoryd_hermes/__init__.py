"""Hermes Agent: memoryd as its memory provider.  Names load when first used: the command line of a host pays for its own only."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd_hermes._cli import memoryd_command as memoryd_command
    from memoryd_hermes._cli import register_cli as register_cli
    from memoryd_hermes._history import history_source as history_source
    from memoryd_hermes._host import host as host
    from memoryd_hermes._import import source as source
    from memoryd_hermes._provider import MemorydProvider as MemorydProvider
    from memoryd_hermes._provider import register as register

_HOMES = {
    "MemorydProvider": "_provider",
    "register": "_provider",
    "host": "_host",
    "history_source": "_history",
    "source": "_import",
    "memoryd_command": "_cli",
    "register_cli": "_cli",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd_hermes' has no attribute {name!r}")
    value = getattr(import_module(f"memoryd_hermes.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
