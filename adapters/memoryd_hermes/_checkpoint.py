"""Before the host compacts: its rows into the archive, or a refusal that names every way out."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any

from memoryd.core import Receipt, Scope, bind_scope
from memoryd.errors import CheckpointBlocked, DaemonError, MemorydError
from memoryd_hermes._echo import clean_row
from memoryd_hermes._stores import Store

__all__ = ["checkpoint", "line_of"]

_OPEN_MODES = ("off", "warn")


def checkpoint(store: Store, scope: Scope, messages: Sequence[Any], trigger: str) -> Receipt | None:
    """Archive ``messages``; None where the store cannot be opened and the gate is open all the same.

    Raises :class:`CheckpointBlocked` where they are not archived.  Rows are given as the host has them, without recalled text in them.
    """
    rows = [clean_row(row) for row in messages]
    try:
        try:
            return _archived(store, scope, rows, trigger)
        except DaemonError:  # a checkpoint needs the local disk only
            return _archived(store, scope, rows, trigger)
    except CheckpointBlocked as blocked:
        raise _of_this_store(blocked, store) from blocked.__cause__
    except MemorydError as error:
        if os.environ.get("MEMORYD_GATE", "").strip().lower() in _OPEN_MODES:
            return None
        raise _refusal(store, scope, error) from error


def _archived(store: Store, scope: Scope, rows: list[Any], trigger: str) -> Receipt:
    with store.memory() as memory, bind_scope(scope):
        try:
            return memory.checkpoint(rows, host="hermes", trigger=trigger)
        except CheckpointBlocked as blocked:
            if isinstance(blocked.__cause__, DaemonError):
                raise blocked.__cause__ from None
            raise


def _of_this_store(blocked: CheckpointBlocked, store: Store) -> CheckpointBlocked:
    """With commands that find the store: it is not where memoryd looks by itself."""
    here = f"memoryd --home {shlex.quote(str(store.path))} gate"
    problem, remedy = (text.replace("memoryd gate", here) for text in (blocked.problem, blocked.remedy))
    return CheckpointBlocked(blocked.cause, problem, remedy)


def _refusal(store: Store, scope: Scope, error: MemorydError) -> CheckpointBlocked:
    """What the gate says by itself, for a store that could not even be opened."""
    session = shlex.quote(scope.need_session())
    home = shlex.quote(str(store.path))
    return CheckpointBlocked(
        getattr(error, "cause", "") or type(error).__name__,
        f"the transcript of this session is not archived: {error}.",
        f"Nothing was lost; mend the cause and compact again. Other ways out: `memoryd --home {home} gate release {session}` (with --once "
        "for one time), MEMORYD_GATE=warn or off in the host's environment, or a second archive at gate.fallback_dir.",
    )


def line_of(receipt: Receipt | None) -> str:
    """One line for the host's summary: the checkpoint's id and its counts."""
    if receipt is None:
        return "memoryd: not archived, the gate is open"
    if receipt.verdict != "archived":
        return f"memoryd: {receipt.verdict}"
    parts = [f"{receipt.evidence} messages archived", f"{receipt.new_rows} new rows"]
    parts += [f"{receipt.degraded} kept as text"] if receipt.degraded else []
    parts += [f"{receipt.erased} forgotten"] if receipt.erased else []
    parts += ["in the second archive"] if receipt.warning and "second archive" in receipt.warning else []
    return f"memoryd checkpoint {receipt.id}: {', '.join(parts)}"
