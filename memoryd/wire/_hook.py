"""The hook frame: what a hook program, which knows no JSON, ships to the daemon, and the exit code and streams that it gets back.

A connection whose first byte is ``H`` carries one call and its answer, then ends.  All numbers are unsigned, 32 bits, big-endian.

    call    b"H" + length of body + body
    body    six fields, each its length + bytes: version (b"1"), host, event, working directory ...
            ... then the number of environment pairs and each pair as a field KEY=VALUE, then raw standard input as a field
    answer  b"R" + length of body + body: one byte exit code, then standard output and standard error as fields
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import attrs

from memoryd.core import Value
from memoryd.errors import ProtocolError

__all__ = ["HOOK_VERSION", "HookCall", "HookCallReader", "HookReply", "HookReplyReader"]

HOOK_VERSION = b"1"
_MAX_BODY = 64 * 1024 * 1024  # a whole transcript may stand in a payload
_MAX_PAIRS = 1024
_LENGTH = struct.Struct(">I")


@attrs.frozen(slots=True, eq=False, repr=False)
class HookCall(Value):
    """One run of a hook program.  ``environment`` are the few variables that it passes on; ``stdin`` is the host's payload as it came.

    Names and paths are bytes as the operating system has them, decoded with ``surrogateescape``.
    """

    host: str
    event: str
    cwd: str = ""
    environment: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    stdin: bytes = attrs.field(default=b"", repr=False)

    def encode(self) -> bytes:
        """The whole frame."""
        pairs = [_raw(f"{name}={value}") for name, value in self.environment.items()]
        head = b"".join(map(_field, (HOOK_VERSION, _raw(self.host), _raw(self.event), _raw(self.cwd))))
        return _frame(b"H", head + _LENGTH.pack(len(pairs)) + b"".join(map(_field, pairs)) + _field(self.stdin))

    @classmethod
    def decode(cls, body: bytes) -> HookCall:
        """The call of a frame's body.  Raises :class:`ProtocolError` for bytes that are none, or of another version."""
        fields = _Fields(body)
        version = fields.next()
        if version != HOOK_VERSION:
            raise ProtocolError(f"hook frame of version {version[:8]!r}, expected {HOOK_VERSION!r}: run 'memoryd install' again")
        host, event, cwd = (_text(fields.next()) for _ in range(3))
        environment = dict(_pair(fields.next()) for _ in range(fields.count()))
        call = cls(host, event, cwd, environment, fields.next())
        fields.end()
        return call


@attrs.frozen(slots=True, eq=False, repr=False)
class HookReply(Value):
    """What the hook program does: write both streams, then end with ``code`` (0 to 255)."""

    code: int = 0
    stdout: bytes = attrs.field(default=b"", repr=False)
    stderr: bytes = attrs.field(default=b"", repr=False)

    def encode(self) -> bytes:
        """The whole frame."""
        return _frame(b"R", bytes((self.code,)) + _field(self.stdout) + _field(self.stderr))

    @classmethod
    def decode(cls, body: bytes) -> HookReply:
        """The reply of a frame's body.  Raises :class:`ProtocolError`."""
        if not body:
            raise ProtocolError("hook frame without an exit code")
        fields = _Fields(body, 1)
        reply = cls(body[0], fields.next(), fields.next())
        fields.end()
        return reply


Frame = TypeVar("Frame")


class _Reader(Generic[Frame]):
    """Takes bytes as they come and gives the one frame when it is whole."""

    _mark: bytes
    _decode: Callable[[bytes], Frame]

    def __init__(self, limit: int = _MAX_BODY) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def receive(self, data: bytes) -> Frame | None:
        """The frame, or None while bytes of it are missing.  Raises :class:`ProtocolError`, also for bytes after the frame."""
        buffer = self._buffer
        buffer += data
        if buffer[:1] not in (b"", self._mark):
            raise ProtocolError(f"hook frame begins with {bytes(buffer[:1])!r}, expected {self._mark!r}")
        if len(buffer) < 5:
            return None
        (length,) = _LENGTH.unpack_from(buffer, 1)
        if length > self._limit:
            raise ProtocolError(f"hook frame of {length} bytes; at most {self._limit} are allowed")
        if len(buffer) > 5 + length:
            raise ProtocolError("bytes after the hook frame")
        return self._decode(bytes(buffer[5:])) if len(buffer) == 5 + length else None


class HookCallReader(_Reader[HookCall]):
    """The daemon's side."""

    _mark = b"H"
    _decode = staticmethod(HookCall.decode)


class HookReplyReader(_Reader[HookReply]):
    """The hook program's side (it has code of its own; this one is for tests and other clients)."""

    _mark = b"R"
    _decode = staticmethod(HookReply.decode)


class _Fields:
    """The fields of a body, one after the other."""

    def __init__(self, body: bytes, start: int = 0) -> None:
        self._body = body
        self._at = start

    def _number(self) -> int:
        if len(self._body) - self._at < 4:
            raise ProtocolError("hook frame ends inside a field")
        (number,) = _LENGTH.unpack_from(self._body, self._at)
        self._at += 4
        return int(number)

    def next(self) -> bytes:
        length = self._number()
        if length > len(self._body) - self._at:
            raise ProtocolError("hook frame ends inside a field")
        self._at += length
        return self._body[self._at - length : self._at]

    def count(self) -> int:
        number = self._number()
        if number > _MAX_PAIRS:
            raise ProtocolError(f"hook frame with {number} variables; at most {_MAX_PAIRS} are allowed")
        return number

    def end(self) -> None:
        if self._at != len(self._body):
            raise ProtocolError("hook frame with bytes after its last field")


def _frame(mark: bytes, body: bytes) -> bytes:
    return mark + _LENGTH.pack(len(body)) + body


def _field(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _pair(data: bytes) -> tuple[str, str]:
    name, _, value = _text(data).partition("=")
    return name, value
