"""A backend that a program gives itself, without an installed entry point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memoryd.core import BackendFactory
from memoryd.runtime import registered_backends

__all__ = ["registered"]


@contextmanager
def registered(name: str, factory: BackendFactory) -> Iterator[None]:
    """Inside the block, runtimes of this process find the backend ``name``, before an installed one of that name.

    ::

        remote = FakeRemote()
        with registered("fake", lambda context: remote):
            async with memoryd.open_runtime(home, config={"backend": "fake"}) as rt:
                ...
    """
    before = registered_backends.get(name)
    registered_backends[name] = factory
    try:
        yield
    finally:
        if before is None:
            del registered_backends[name]
        else:
            registered_backends[name] = before
