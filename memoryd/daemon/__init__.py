"""One process serves every agent of a user over a unix socket: ``memoryd serve``.  Its names load when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.daemon._front import AnswerHook as AnswerHook
    from memoryd.daemon._front import OpenProfile as OpenProfile
    from memoryd.daemon._pool import Pool as Pool
    from memoryd.daemon._scrape import parse_address as parse_address
    from memoryd.daemon._serve import serve_until_signal as serve_until_signal

_HOMES = {
    "AnswerHook": "_front",
    "OpenProfile": "_front",
    "Pool": "_pool",
    "parse_address": "_scrape",
    "serve_until_signal": "_serve",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd.daemon' has no attribute {name!r}")
    value = getattr(import_module(f"memoryd.daemon.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
