"""The gate before a compaction: it is allowed once its transcript is safely archived, and refused otherwise, with all ways out."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from memoryd.checkpoint._archive import Archive
from memoryd.checkpoint._notes import GateNotes
from memoryd.checkpoint._shelf import Shelf
from memoryd.core import GateMode, Receipt, Value, from_micros
from memoryd.errors import CheckpointBlocked, DeadlineExceeded, InvalidInput, MemorydError, StoreError
from memoryd.store import ProfileStore

__all__ = ["GATE_MODES", "Gate", "GateStatus", "gate_mode", "refusal"]

GATE_MODES: tuple[GateMode, ...] = ("block", "warn", "off")
DEADLINE_S = 20.0
_FIRST_SHARE = 0.6
_MANY = 3
_WARN_AT = 0.8
Rows = Iterable[object]


@attrs.frozen(slots=True, eq=False, repr=False)
class GateStatus(Value):
    """What the gate would do now, and what it did last (receipts, oldest first)."""

    mode: GateMode
    decided_by: str
    archive: str
    fallback: str
    released: Mapping[str, str]
    refusals: Mapping[str, int]
    receipts: tuple[Mapping[str, Any], ...]


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class _Call:
    rows: Rows | None
    source: bytes | None
    user: str
    session: str
    host: str
    trigger: str
    at: int
    private: bool


def gate_mode(configured: GateMode, environ: Mapping[str, str]) -> tuple[GateMode, str]:
    """(mode, who decided): ``MEMORYD_GATE`` wins over the configuration; a word that is no mode closes the gate."""
    word = environ.get("MEMORYD_GATE", "").strip().lower()
    if not word:
        return configured, "configuration"
    return next(((mode, "MEMORYD_GATE") for mode in GATE_MODES if mode == word), ("block", "MEMORYD_GATE (unknown word)"))


class Gate:
    """``checkpoint`` returns a receipt that allows the compaction, or raises :class:`~memoryd.errors.CheckpointBlocked`.

    It needs the local disk only: no model, network, backend or daemon.  Calls may overlap, in threads and in processes.
    """

    def __init__(
        self, profile: ProfileStore, *, mode: GateMode = "block", fallback_dir: Path | None = None, quota_bytes: int = 0,
        deadline_s: float = DEADLINE_S, environ: Mapping[str, str] = os.environ, vfs: str | None = None,
        shelf: Shelf | None = None,
    ) -> None:  # fmt: skip
        self.shelf = Shelf(profile, fallback_dir=fallback_dir, vfs=vfs) if shelf is None else shelf
        self._notes = GateNotes(profile.directory)
        self._mode = mode
        self._quota = quota_bytes
        self._deadline_s = deadline_s
        self._environ = environ

    def checkpoint(
        self, rows: Rows | None, *, user: str, session: str, host: str = "", trigger: str = "", at: int | None = None,
        source: bytes | None = None, private: bool = False, deadline_s: float | None = None,
    ) -> Receipt:  # fmt: skip
        """Archive ``rows`` (None: the host has no transcript) and say whether the compaction may go on.

        ``source`` is the host's own transcript, kept for ``restore(full=True)``; ``at`` is in microseconds, now by default.  It ends
        within ``deadline_s``.  A private session and an empty transcript have nothing to archive, and are allowed.
        """
        started = time.monotonic()
        now = time.time_ns() // 1000 if at is None else at
        call = _Call(rows=rows, source=source, user=user, session=session, host=host, trigger=trigger, at=now, private=private)
        try:
            receipt = self._decide(call, started + (self._deadline_s if deadline_s is None else deadline_s))
        except CheckpointBlocked as blocked:
            self._record(call, started, "refused", cause=blocked.cause, reason=blocked.problem)
            raise
        self._record(call, started, receipt.verdict, reason=receipt.warning, receipt=receipt)
        return receipt

    def again(self, id: str, *, user: str, session: str, host: str = "", trigger: str = "") -> Receipt | None:
        """The receipt of the checkpoint ``id``, for a transcript that is known to be as it was then; None where it is not this session's.

        Raises :class:`~memoryd.errors.CheckpointNotFound` and the archive's errors.
        """
        started, now = time.monotonic(), time.time_ns() // 1000
        info = self.shelf.show(id)
        if (info.user, info.session) != (user, session) or not info.attempts:
            return None
        receipt = attrs.evolve(info.attempts[-1], new_rows=0, host=host, trigger=trigger, at=from_micros(now))
        call = _Call(rows=None, source=None, user=user, session=session, host=host, trigger=trigger, at=now, private=False)
        self._record(call, started, receipt.verdict, receipt=receipt)
        return receipt

    def release(self, session: str, *, once: bool = False) -> None:
        """Allow the session's compactions although they are not archived: the next one, or all until :meth:`clear`."""
        with self._notes.change() as notes:
            notes.release(session, once=once)

    def clear(self, session: str) -> bool:
        """End a release; False where there was none."""
        with self._notes.change() as notes:
            return notes.released.pop(session, None) is not None

    def status(self, receipts: int = 10) -> GateStatus:
        mode, decided_by = gate_mode(self._mode, self._environ)
        notes, fallback = self._notes.read(), self.shelf.fallback
        return GateStatus(
            mode, decided_by, str(self.shelf.directory), str(fallback or ""), notes.released, notes.refusals,
            tuple(self._notes.receipts(receipts)),
        )  # fmt: skip

    def close(self) -> None:
        self.shelf.close()

    # -- deciding -----------------------------------------------------------------------------------------------------------

    def _decide(self, call: _Call, deadline: float) -> Receipt:
        mode, _ = gate_mode(self._mode, self._environ)
        if mode == "off":
            return _allowed(call, "off", "the gate is off: this transcript was not archived")
        if call.private or (call.rows is None and call.source is None):
            return _allowed(call, "nothing-to-archive")
        try:
            receipt = self._archive(call, deadline)
        except Exception as error:  # noqa: BLE001  the gate fails closed: what nobody thought of is a refusal too
            return self._refuse(call, mode, error)
        self._notes.succeeded(call.session)
        return receipt

    def _archive(self, call: _Call, deadline: float) -> Receipt:
        rows = _as_list(call.rows)
        if not rows and not call.source:
            return _allowed(call, "nothing-to-archive")
        has_second, now = self.shelf.fallback is not None, time.monotonic()
        share = now + _FIRST_SHARE * max(0.0, deadline - now) if has_second else deadline
        try:
            return self._with_quota(_upsert(self.shelf.primary(), call, rows, share))
        except Exception as error:  # whatever stops the first archive, the second may still save the transcript
            if not has_second or isinstance(error, InvalidInput):
                raise
            return self._archive_second(call, rows, deadline, error)

    def _archive_second(self, call: _Call, rows: list[object], deadline: float, first: Exception) -> Receipt:
        try:
            receipt = _upsert(self.shelf.second(), call, rows, deadline)
        except MemorydError as error:
            both = StoreError(f"{_reason(first)}; the second archive failed too: {error}")
            both.cause = _cause(first)
            raise both from error
        warning = f"archived in the second archive, {receipt.archive}, because the first failed: {_reason(first)}"
        return attrs.evolve(receipt, warning=warning)

    def _with_quota(self, receipt: Receipt) -> Receipt:
        used = self.shelf.primary().usage() if self._quota else 0
        if used < _WARN_AT * self._quota or not self._quota:
            return receipt
        warning = f"the archive uses {used:,} bytes, {100 * used // self._quota} % of gate.quota_bytes; nothing is deleted by itself"
        return attrs.evolve(receipt, warning=warning)

    def _refuse(self, call: _Call, mode: GateMode, error: Exception) -> Receipt:
        if not isinstance(call.session, str):
            raise refusal(error, "") from error
        if self._notes.use_release(call.session):
            return _allowed(call, "released", f"not archived, allowed by a release: {_reason(error)}")
        if mode == "warn":
            return _allowed(call, "warned", f"not archived, allowed by the mode warn: {_reason(error)}")
        raise refusal(error, call.session, self._notes.refused(call.session)) from error

    def _record(
        self, call: _Call, started: float, verdict: str, *, cause: str = "", reason: str = "", receipt: Receipt | None = None
    ) -> None:
        found = {"id": receipt.id, "attempt": receipt.attempt, "rows": receipt.rows} if receipt is not None else {}
        milliseconds = round((time.monotonic() - started) * 1000, 3)
        self._notes.record({
            "at": call.at, "session": call.session, "host": call.host, "trigger": call.trigger, "verdict": verdict, "cause": cause,
            "reason": reason, **found, "ms": milliseconds,
        })  # fmt: skip


def refusal(error: Exception, session: str, in_a_row: int = 1) -> CheckpointBlocked:
    """The refusal that ``error`` means, with all ways out; also for what fails before there is a gate, such as opening the profile."""
    name = shlex.quote(session.encode("utf-8", "backslashreplace").decode()) if session else "SESSION"
    message = f"the transcript of this session is not archived: {_reason(error)}."
    if in_a_row >= _MANY:
        message += f" This is refusal {in_a_row} in a row; `memoryd gate release {name} --once` lets the next compaction pass unarchived."
    remedy = (
        f"Nothing was lost; mend the cause and compact again. Other ways out: `memoryd gate release {name}` (with --once for one time), "
        "MEMORYD_GATE=warn or off in the host's environment, or a second archive at gate.fallback_dir."
    )
    return CheckpointBlocked(_cause(error), message, remedy)


def _cause(error: Exception) -> str:
    match error:
        case StoreError() | CheckpointBlocked():
            return error.cause
        case DeadlineExceeded():
            return "deadline"
        case InvalidInput():
            return "invalid"
        case _:
            return f"unknown:{type(error).__name__}"


def _reason(error: Exception) -> str:
    """Our own errors never hold a message's text; a foreign one might, so only its class is told."""
    return str(error) if isinstance(error, MemorydError) else f"an unexpected {type(error).__name__}"


def _as_list(rows: Rows | None) -> list[object]:
    if rows is None:
        return []
    if isinstance(rows, (str, bytes, Mapping)):
        raise InvalidInput("messages", f"expected a list of rows, got {type(rows).__name__}")
    return list(rows)


def _upsert(archive: Archive, call: _Call, rows: list[object], deadline: float) -> Receipt:
    return archive.upsert(
        rows, user=call.user, session=call.session, host=call.host, trigger=call.trigger, at=call.at, deadline=deadline, source=call.source
    )


def _allowed(call: _Call, verdict: Any, warning: str = "") -> Receipt:
    at = from_micros(call.at)
    return Receipt("", 0, verdict, call.session, host=call.host, trigger=call.trigger, at=at, warning=warning)
