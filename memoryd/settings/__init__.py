"""Reads configuration files and the environment into the schema of ``memoryd.core``.  Light: no trio, no SQLite.

Its names load when first used: where a client only asks for paths, that costs the standard library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.settings._load import Loaded as Loaded
    from memoryd.settings._load import Shown as Shown
    from memoryd.settings._load import describe as describe
    from memoryd.settings._load import load_config as load_config
    from memoryd.settings._paths import config_paths as config_paths
    from memoryd.settings._paths import log_path as log_path
    from memoryd.settings._paths import resolve_home as resolve_home
    from memoryd.settings._paths import resolve_socket as resolve_socket
    from memoryd.settings._sample import default_toml as default_toml
    from memoryd.settings._unknown import unknown_variables as unknown_variables

_HOMES = {
    "Loaded": "_load",
    "Shown": "_load",
    "describe": "_load",
    "load_config": "_load",
    "config_paths": "_paths",
    "log_path": "_paths",
    "resolve_home": "_paths",
    "resolve_socket": "_paths",
    "default_toml": "_sample",
    "unknown_variables": "_unknown",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd.settings' has no attribute {name!r}")
    value = getattr(import_module(f"memoryd.settings.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
