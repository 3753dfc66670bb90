"""What the gate remembers outside the archive, which may be the broken part: releases, refusals in a row, and its receipts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs

from memoryd.errors import MemorydError, StoreError
from memoryd.store import lock_file, os_errors, write_private

__all__ = ["GateNotes", "Notes"]

_LOCK_S = 1.0
_MAX_SESSIONS = 1000
_MAX_RECEIPTS = 256 * 1024


@attrs.define(slots=True, eq=False, repr=False)
class Notes:
    """``released``: session -> ``once`` or ``until-cleared``; ``refusals``: session -> refusals since the last success."""

    released: dict[str, str] = attrs.field(factory=dict)
    refusals: dict[str, int] = attrs.field(factory=dict)

    def release(self, session: str, *, once: bool) -> None:
        self.released[session] = "once" if once else "until-cleared"

    def use_release(self, session: str) -> bool:
        """True where the session is released; a release for one time is used up."""
        if self.released.get(session) == "once":
            del self.released[session]
            return True
        return session in self.released

    def refuse(self, session: str) -> int:
        """Count one more refusal; how many in a row there are now."""
        self.refusals[session] = self.refusals.pop(session, 0) + 1
        while len(self.refusals) > _MAX_SESSIONS:
            self.refusals.pop(next(iter(self.refusals)))
        return self.refusals[session]


class GateNotes:
    """The notes of one profile, in ``gate.json`` and ``gate.receipts.jsonl`` beside its archive; safe between processes."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "gate.json"
        self._lock = directory / "gate.lock"
        self._receipts = directory / "gate.receipts.jsonl"

    def read(self) -> Notes:
        """What is noted; nothing where the file is missing or unreadable."""
        with suppress(OSError, ValueError, TypeError, LookupError):
            found = json.loads(self._path.read_text("ascii"))
            return Notes(dict(found["released"]), dict(found["refusals"]))
        return Notes()

    @contextmanager
    def change(self) -> Iterator[Notes]:
        """Read, change and write as one step.  Raises :class:`~memoryd.errors.StoreError` where the directory cannot be written."""
        with self._locked():
            notes = self.read()
            before = attrs.asdict(notes)
            yield notes
            if attrs.asdict(notes) != before:
                write_private(self._path, json.dumps(attrs.asdict(notes)).encode("ascii"))

    def use_release(self, session: str) -> bool:
        """Whether the session is released.  Where using it up cannot be noted it holds all the same: it is the user's way out."""
        if session not in self.read().released:
            return False
        try:
            with self.change() as notes:
                return notes.use_release(session)
        except StoreError:
            return True

    def refused(self, session: str) -> int:
        """Note a refusal; the number in a row, as far as it can be known."""
        try:
            with self.change() as notes:
                return notes.refuse(session)
        except StoreError:
            return self.read().refusals.get(session, 0) + 1

    def succeeded(self, session: str) -> None:
        if session in self.read().refusals:
            with suppress(StoreError), self.change() as notes:
                notes.refusals.pop(session, None)

    def record(self, receipt: dict[str, Any]) -> None:
        """Append one receipt, as far as the disk lets us; the older half goes when the file is full."""
        line = json.dumps(receipt, default=repr).encode("ascii") + b"\n"
        with suppress(OSError, MemorydError):
            fd = os.open(self._receipts, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, line)
                full = os.fstat(fd).st_size > _MAX_RECEIPTS
            finally:
                os.close(fd)
            if full:
                self._halve()

    def receipts(self, limit: int = 10) -> list[dict[str, Any]]:
        """The latest receipts, oldest first."""
        with suppress(OSError):
            lines = self._receipts.read_bytes().splitlines()[-limit:] if limit > 0 else []
            return [json.loads(line) for line in lines if line.endswith(b"}")]
        return []

    def _halve(self) -> None:
        with self._locked():
            kept = self._receipts.read_bytes()[-_MAX_RECEIPTS // 2 :]
            write_private(self._receipts, kept[kept.find(b"\n") + 1 :])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with os_errors(self._lock):
            fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not lock_file(fd, _LOCK_S):
                raise StoreError(f"{self._lock}: another process holds it", path=str(self._lock))
            yield
        finally:
            os.close(fd)
