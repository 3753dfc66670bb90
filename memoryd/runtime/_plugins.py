"""From a backend's name to a backend.  Only a chosen one is loaded.

A program may put factories of its own into :data:`registered_backends`, before the installed ones; ``memoryd.testing`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from memoryd.core import Backend, BackendContext, BackendFactory
from memoryd.errors import BackendNotFound, BackendUnavailable
from memoryd.runtime._discover import Discovery, FoundBackend, discover
from memoryd.runtime._strangers import strangers_code
from memoryd.settings import resolve_home

__all__ = ["available_backends", "build_backend", "discover_backends", "find_backend", "make_backend", "registered_backends"]

registered_backends: dict[str, BackendFactory] = {}


def discover_backends(home: Path | None = None) -> Discovery:
    """Everything there is, with what is shadowed and what is broken.  ``home`` defaults to the user's."""
    return discover(resolve_home() if home is None else home, registered_backends)


def available_backends(home: Path | None = None) -> Mapping[str, FoundBackend]:
    """Every backend by name; of two with one name the first found counts."""
    return discover_backends(home).found


def find_backend(name: str, home: Path | None = None) -> FoundBackend:
    """The backend of that name.  Raises :class:`BackendNotFound`, which lists those there are and says what is broken."""
    if name in registered_backends:  # needs no search
        return FoundBackend(name, "program", "registered by the program", registered_backends[name])
    discovery = discover_backends(home)
    found = discovery.found.get(name)
    if found is None:
        broken = "".join(f"; {one.place}: {one.reason}" for one in discovery.broken if one.name == name)
        raise BackendNotFound(f'backend: "{name}" is not installed; there are: {", ".join(sorted(discovery.found))}{broken}')
    return found


def build_backend(found: FoundBackend, context: BackendContext) -> Backend:
    """Load and build; not opened, and maybe not available.  Raises :class:`BackendPermanent`, or what its settings raise."""
    factory = found.load()
    with strangers_code(found.name, "built"):
        return factory(context)


def make_backend(context: BackendContext, home: Path | None = None) -> Backend:
    """The backend that ``context`` names, ready to be opened.

    Raises :class:`BackendNotFound` with the names there are, :class:`BackendUnavailable` where it says that something is missing,
    :class:`BackendPermanent` where its package cannot be imported.
    """
    backend = build_backend(find_backend(context.name, home), context)
    with strangers_code(context.name, "asked"):
        available = backend.is_available()
    if not available:
        raise BackendUnavailable(f'backend: "{context.name}" is not available: {available.reason}')
    return backend
