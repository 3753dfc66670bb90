"""What lives in a nursery: an open memory, its writer tasks, prefetch, the barrier, house-keeping.  Its names load when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd.runtime._discover import BrokenPlugin as BrokenPlugin
    from memoryd.runtime._discover import Discovery as Discovery
    from memoryd.runtime._discover import FoundBackend as FoundBackend
    from memoryd.runtime._door import open_runtime as open_runtime
    from memoryd.runtime._export import Exported as Exported
    from memoryd.runtime._export import export_events as export_events
    from memoryd.runtime._export import opened_log as opened_log
    from memoryd.runtime._exports import known_backups as known_backups
    from memoryd.runtime._exports import note_backup as note_backup
    from memoryd.runtime._import import Imported as Imported
    from memoryd.runtime._import import import_events as import_events
    from memoryd.runtime._ingest import event_time as event_time
    from memoryd.runtime._ingest import turn_key as turn_key
    from memoryd.runtime._kernel import make_gate as make_gate
    from memoryd.runtime._kernel import now_micros as now_micros
    from memoryd.runtime._members import ask_backend as ask_backend
    from memoryd.runtime._members import backend_context as backend_context
    from memoryd.runtime._members import roles as roles
    from memoryd.runtime._open import OpenRuntime as OpenRuntime
    from memoryd.runtime._plugins import available_backends as available_backends
    from memoryd.runtime._plugins import build_backend as build_backend
    from memoryd.runtime._plugins import discover_backends as discover_backends
    from memoryd.runtime._plugins import find_backend as find_backend
    from memoryd.runtime._plugins import registered_backends as registered_backends
    from memoryd.runtime._portal import Portal as Portal
    from memoryd.runtime._replay import Replayed as Replayed
    from memoryd.runtime._replay import replay as replay
    from memoryd.runtime._runtime import Runtime as Runtime

_HOMES = {
    "open_runtime": "_door",
    "BrokenPlugin": "_discover",
    "Discovery": "_discover",
    "FoundBackend": "_discover",
    "Exported": "_export",
    "export_events": "_export",
    "opened_log": "_export",
    "known_backups": "_exports",
    "note_backup": "_exports",
    "Imported": "_import",
    "import_events": "_import",
    "event_time": "_ingest",
    "turn_key": "_ingest",
    "make_gate": "_kernel",
    "now_micros": "_kernel",
    "ask_backend": "_members",
    "backend_context": "_members",
    "roles": "_members",
    "OpenRuntime": "_open",
    "available_backends": "_plugins",
    "build_backend": "_plugins",
    "discover_backends": "_plugins",
    "find_backend": "_plugins",
    "registered_backends": "_plugins",
    "Portal": "_portal",
    "Replayed": "_replay",
    "replay": "_replay",
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
