"""Honcho as a backend: the honcho-ai SDK natively under trio.  A cloud backend: what it sends is redacted, and it runs only when named."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd_honcho._backend import HonchoBackend as HonchoBackend
    from memoryd_honcho._backend import create as create

__all__ = ["HonchoBackend", "create"]


def __getattr__(name: str) -> Any:
    """The backend loads when it is chosen, and the SDK when it is opened."""
    if name not in __all__:
        raise AttributeError(f"module 'memoryd_honcho' has no attribute {name!r}")
    from memoryd_honcho import _backend

    return getattr(_backend, name)
