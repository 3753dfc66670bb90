"""Looks for what is wrong, and says what to do about it.  Its names load when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.doctor._daemon import DaemonSeen as DaemonSeen
    from memoryd.doctor._daemon import see_daemon as see_daemon
    from memoryd.doctor._hosts import HostSeen as HostSeen
    from memoryd.doctor._hosts import see_hosts as see_hosts
    from memoryd.doctor._run import Finding as Finding
    from memoryd.doctor._run import examine as examine
    from memoryd.doctor._verdict import state_of as state_of

_HOMES = {
    "DaemonSeen": "_daemon",
    "see_daemon": "_daemon",
    "HostSeen": "_hosts",
    "see_hosts": "_hosts",
    "Finding": "_run",
    "examine": "_run",
    "state_of": "_verdict",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd.doctor' has no attribute {name!r}")
    value = getattr(import_module(f"memoryd.doctor.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
