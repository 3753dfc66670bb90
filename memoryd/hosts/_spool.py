"""What hook programs could not tell anybody: frames, appended to one file of the home, until memoryd takes them in.

A frame is followed by a line end.  What is no frame, because a disk was full or a byte has changed, is put aside, and reading goes on at
the next frame.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import attrs

from memoryd.core import Value
from memoryd.errors import ProtocolError
from memoryd.hosts._call import Call, why_unrecorded
from memoryd.hosts._hide import hide
from memoryd.settings import load_config
from memoryd.store import home_directory, private_directory, write_private
from memoryd.wire import HookCall

__all__ = ["SpoolFile", "append_spool", "claim_spool", "has_spool", "spool_allowed", "split_frames"]

NAME = "hooks.spool"
_TAKING = "hooks.taking."
_ASIDE = "hooks.quarantine"


def has_spool(home: Path) -> bool:
    """Whether anything waits; one look at the directory."""
    with suppress(OSError), os.scandir(home) as found:
        return any(entry.name == NAME or entry.name.startswith(_TAKING) for entry in found)
    return False


def append_spool(home: Path, call: HookCall) -> None:
    """Put ``call`` back, as the hook program does; raises OSError."""
    home_directory(home)
    descriptor = os.open(home / NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, call.encode() + b"\n")
    finally:
        os.close(descriptor)


def spool_allowed(call: Call) -> None:
    """Put ``call`` back, where the settings let anything of it be written.  Blocking; raises OSError and the configuration's errors."""
    loaded = load_config(call.home, call.profile, environ=call.environ_here)
    if why_unrecorded(call, loaded.config, loaded.home):
        hide(call, loaded.home)
    else:
        append_spool(loaded.home, call.frame)


@attrs.define(slots=True, eq=False, repr=False)
class SpoolFile:
    """A file of frames that is this process's to take in: nobody appends to it any more, and nobody else reads it."""

    path: Path
    _descriptor: int

    def calls(self) -> list[HookCall]:
        """The frames; what is none goes to a file in ``hooks.quarantine``."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        calls, damaged = split_frames(_rest_of(self._descriptor))
        if damaged:
            aside = self.path.parent / _ASIDE
            private_directory(aside)
            write_private(aside / self.path.name.removeprefix(_TAKING), damaged)
        return calls

    def finish(self) -> list[HookCall]:
        """Remove the file; what a hook program appended at the very last moment."""
        self.path.unlink(missing_ok=True)
        late, _ = split_frames(_rest_of(self._descriptor))
        return late

    def close(self) -> None:
        os.close(self._descriptor)


def claim_spool(home: Path) -> Iterator[SpoolFile]:
    """The files that wait, those first that a process left behind that ended while it took them in."""
    with suppress(FileNotFoundError):
        os.rename(home / NAME, home / f"{_TAKING}{os.getpid()}-{secrets.token_hex(8)}")
    for path in sorted(home.glob(f"{_TAKING}*"), key=_age):
        with suppress(FileNotFoundError, BlockingIOError):
            yield _locked(path)


def _age(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0


def _locked(path: Path) -> SpoolFile:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:  # it goes to the caller with the lock, or not at all
        os.close(descriptor)
        raise
    return SpoolFile(path, descriptor)


def _rest_of(descriptor: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


@attrs.frozen(slots=True, eq=False, repr=False)
class _Found(Value):
    call: HookCall
    end: int


def split_frames(data: bytes) -> tuple[list[HookCall], bytes]:
    """(the calls, what is no frame)."""
    calls: list[HookCall] = []
    damaged = bytearray()
    at = 0
    while at < len(data):
        found = _frame_at(data, at)
        if found is not None:
            calls.append(found.call)
            at = found.end
            continue
        following = data.find(b"H", at + 1)
        end = len(data) if following < 0 else following
        damaged += data[at:end]
        at = end
    return calls, bytes(damaged)


def _frame_at(data: bytes, at: int) -> _Found | None:
    if data[at : at + 1] != b"H" or len(data) < at + 5:
        return None
    end = at + 5 + int.from_bytes(data[at + 1 : at + 5], "big")
    if end >= len(data) or data[end : end + 1] != b"\n":
        return None
    try:
        return _Found(HookCall.decode(data[at + 5 : end]), end + 1)
    except ProtocolError:
        return None
