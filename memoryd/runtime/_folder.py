"""Loads a backend from a file in a folder of plugins."""

from __future__ import annotations

import sys
from hashlib import blake2b
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import cast

from memoryd.core import BackendFactory
from memoryd.errors import BackendPermanent
from memoryd.runtime._strangers import strangers_code

__all__ = ["load_plugin"]

FACTORY = "create"


def load_plugin(name: str, path: Path) -> BackendFactory:
    """The function ``create`` of the plugin whose code begins in ``path``; the same module each time.

    Raises :class:`BackendPermanent` where it cannot be imported or has no ``create``.
    """
    module = sys.modules.get(_module_name(name, path)) or _import(name, path)
    factory = getattr(module, FACTORY, None)
    if not callable(factory):
        raise BackendPermanent(f'backend "{name}" cannot be used: {path} has no function {FACTORY}(context)')
    return cast(BackendFactory, factory)


def _module_name(name: str, path: Path) -> str:
    """A name of its own: two homes may have plugins of one name, and none may stand for an installed package."""
    return f"memoryd_plugin_{name.replace('-', '_')}_{blake2b(bytes(path), digest_size=6).hexdigest()}"


def _import(name: str, path: Path) -> ModuleType:
    module_name = _module_name(name, path)
    package = [str(path.parent)] if path.name == "__init__.py" else None
    spec = spec_from_file_location(module_name, path, submodule_search_locations=package)
    assert spec is not None and spec.loader is not None  # the file's name ends in .py
    module = module_from_spec(spec)
    sys.modules[module_name] = module  # before it runs, so that a package finds its own parts
    try:
        with strangers_code(name, "imported"):
            spec.loader.exec_module(module)
    except BaseException:  # as the import system does: what did not run is not there
        del sys.modules[module_name]
        raise
    return module
