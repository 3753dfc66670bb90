"""The default backend: SQLite and its full-text search, in the profile's own directory.  No network, no model."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd_local._backend import LocalBackend as LocalBackend
    from memoryd_local._backend import create as create

__all__ = ["LocalBackend", "create"]


def __getattr__(name: str) -> Any:
    """The backend loads when it is chosen: an import of this package alone costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'memoryd_local' has no attribute {name!r}")
    from memoryd_local import _backend

    return getattr(_backend, name)
