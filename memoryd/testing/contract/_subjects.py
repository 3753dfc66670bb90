"""The subjects that memoryd brings itself: each bundled backend, with the faults that it can be made to meet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryd.core import Backend
from memoryd.errors import BackendNotFound
from memoryd.runtime import available_backends
from memoryd.store import Options, connect
from memoryd.testing.contract._bench import Subject

__all__ = ["installed_subject"]


def installed_subject(name: str) -> Subject:
    """The installed backend ``name`` with its default configuration.

    Raises :class:`BackendNotFound`.
    """
    points = available_backends()
    if name not in points:
        raise BackendNotFound(f'backend: "{name}" is not installed; there are: {", ".join(sorted(points))}')
    faults = {"transient": locked} if name == "local" else {}
    return Subject(name, points[name].load(), faults=faults)


@contextmanager
def locked(backend: Backend) -> Iterator[None]:
    """Another connection holds the write lock of the local backend's file."""
    other = connect(Path(backend.info.data_location), Options())
    try:
        with other.transaction("IMMEDIATE"):
            yield
    finally:
        other.close()
