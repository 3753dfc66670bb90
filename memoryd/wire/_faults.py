"""Errors as JSON-RPC error objects and back: a client raises the class that the runtime raised, with the same attributes.

It needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memoryd import errors
from memoryd.errors import MemorydError
from memoryd.wire._values import pack, unpack

__all__ = ["CODES", "decode_error", "encode_error"]

PARSE, INVALID, UNKNOWN_METHOD, WRONG_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603

# A code stays what it is: a new class takes the next number.
_CLASSES = (
    "MemorydError", "InvalidInput", "ConfigError", "ScopeError", "ScopeMissing", "ScopeConflict", "ClosedError", "ForkedError",
    "PlatformUnsupported", "BackendNotFound", "BackendUnavailable", "CheckpointNotFound", "StoreError", "StoreLocked", "StoreFull",
    "StoreReadOnly", "StoreCorrupt", "StoreBroken", "StoreTooNew", "ProfileMismatch", "BarrierFailed", "JournalUnavailable",
    "NotDurable", "DeadlineExceeded", "CheckpointBlocked", "BackendError", "BackendTransient", "BackendPermanent", "BackendAmbiguous",
    "DaemonRunning", "DaemonError", "DaemonUnavailable", "DaemonBusy", "ConnectionLost", "ProtocolError", "ProtocolMismatch",
    "DaemonFault",
)  # fmt: skip

CODES: Mapping[int, type[MemorydError]] = {number: getattr(errors, name) for number, name in enumerate(_CLASSES, 1)}
"""Code of an error of memoryd -> its class."""

_NUMBERS = {kind: number for number, kind in CODES.items()}
_STANDARD: Mapping[int, type[MemorydError]] = {
    PARSE: errors.ProtocolError,
    INVALID: errors.ProtocolError,
    UNKNOWN_METHOD: errors.ProtocolMismatch,
    WRONG_PARAMS: errors.InvalidInput,
    INTERNAL: errors.DaemonFault,
}
"""The codes of JSON-RPC itself -> what a client raises."""

_EXTRA = ("field", "problem", "path", "reason", "cause", "remedy", "retry_after")

# What a constructor takes, of a message and the attributes that came with it.
_BUILD: Mapping[type[MemorydError], Callable[[str, Mapping[str, Any]], MemorydError]] = {
    errors.InvalidInput: lambda text, data: errors.InvalidInput(data.get("field", "params"), data.get("problem", text)),
    errors.JournalUnavailable: lambda text, data: errors.JournalUnavailable(data.get("reason", ""), text),
    errors.CheckpointBlocked: lambda text, data: errors.CheckpointBlocked(
        data.get("cause", ""), data.get("problem", text), data.get("remedy", "")
    ),
    errors.BackendTransient: lambda text, data: errors.BackendTransient(text, retry_after=data.get("retry_after")),
}


def encode_error(error: BaseException, code: int | None = None) -> dict[str, Any]:
    """The error object.  Of what is no :class:`MemorydError` only the class is told: its message may hold a user's text."""
    if not isinstance(error, MemorydError):
        return {"code": INTERNAL, "message": f"internal error: {type(error).__name__}; the daemon's log has the traceback"}
    kind = next(kind for kind in type(error).__mro__ if kind in _NUMBERS)
    data = {"type": kind.__name__, "retryable": error.retryable}
    for name in _EXTRA:
        value = getattr(error, name, None)
        if value is not None:
            data[name] = pack(value)
    return {"code": _NUMBERS[kind] if code is None else code, "message": pack(str(error)), "data": data}


def decode_error(found: Mapping[str, Any]) -> MemorydError:
    """The error to raise.  A code that this version does not know becomes a :class:`DaemonError` with its message."""
    code, message, data = found.get("code"), _plain(found.get("message")), found.get("data")
    kind = CODES.get(code) or _STANDARD.get(code, errors.DaemonError) if isinstance(code, int) else errors.DaemonError
    fields = {name: _plain(value) for name, value in data.items()} if isinstance(data, dict) else {}
    text = message if isinstance(message, str) else "the daemon answered with an error that says nothing"
    build = _BUILD.get(kind)
    if build is not None:
        return build(text, fields)
    if issubclass(kind, errors.StoreError):
        return kind(text, path=fields.get("path"))
    return kind(text)


def _plain(value: Any) -> Any:
    return unpack(value, lambda name, fields: None)
