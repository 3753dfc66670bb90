"""Finding backends: entry points in the group ``memoryd.backends``.  Enumerating imports nothing; only a chosen one is loaded.

A program may put factories of its own into :data:`registered_backends`, before the installed ones; ``memoryd.testing`` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from memoryd.core import Backend, BackendContext, BackendFactory
from memoryd.errors import BackendNotFound, BackendPermanent

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["available_backends", "make_backend", "registered_backends"]

GROUP = "memoryd.backends"
registered_backends: dict[str, BackendFactory] = {}


def available_backends() -> Mapping[str, EntryPoint]:
    """Every installed backend by name; of two with one name the first found counts."""
    from importlib.metadata import entry_points  # 10 ms, which a program with factories of its own does not pay

    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, point)
    return found


def make_backend(context: BackendContext) -> Backend:
    """Load and build the backend that ``context`` names.  It is not opened.

    Raises :class:`BackendNotFound` with the names there are, :class:`BackendPermanent` where its package cannot be imported or says
    that it is not available.
    """
    factory = registered_backends.get(context.name) or _installed(context.name)
    backend = factory(context)
    available = backend.is_available()
    if not available:
        raise BackendPermanent(f'backend "{context.name}" is not available: {available.reason}')
    return backend


def _installed(name: str) -> BackendFactory:
    points = available_backends()
    point = points.get(name)
    if point is None:
        raise BackendNotFound(f'backend: "{name}" is not installed; there are: {", ".join(sorted(points))}')
    try:
        return cast(BackendFactory, point.load())
    except ImportError as error:
        raise BackendPermanent(f'backend "{name}" cannot be imported: {error}') from error
