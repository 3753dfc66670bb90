"""Code that is not ours: a plugin's module, a backend's factory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memoryd.errors import BackendPermanent, MemorydError

__all__ = ["strangers_code"]


@contextmanager
def strangers_code(name: str, doing: str) -> Iterator[None]:
    """Whatever code of the backend ``name`` raises in the block, beside our own errors, is one :class:`BackendPermanent`."""
    try:
        yield
    except MemorydError:
        raise
    except Exception as error:  # a stranger's code fails in any way it likes
        raise BackendPermanent(f'backend "{name}" cannot be {doing}: {type(error).__name__}: {error}') from error
