"""What lives in a nursery: an open memory, its writer tasks, prefetch, the barrier, house-keeping.  Its names load when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.runtime._door import open_runtime as open_runtime
    from memoryd.runtime._kernel import make_gate as make_gate
    from memoryd.runtime._kernel import now_micros as now_micros
    from memoryd.runtime._open import OpenRuntime as OpenRuntime
    from memoryd.runtime._plugins import available_backends as available_backends
    from memoryd.runtime._plugins import registered_backends as registered_backends
    from memoryd.runtime._portal import Portal as Portal
    from memoryd.runtime._runtime import Runtime as Runtime

_HOMES = {
    "open_runtime": "_door",
    "make_gate": "_kernel",
    "now_micros": "_kernel",
    "OpenRuntime": "_open",
    "available_backends": "_plugins",
    "registered_backends": "_plugins",
    "Portal": "_portal",
    "Runtime": "_runtime",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd.runtime' has no attribute {name!r}")
    value = getattr(import_module(f"memoryd.runtime.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
