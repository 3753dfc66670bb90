"""How a check is said, and what several of them mean together."""

from __future__ import annotations

from collections.abc import Iterable

from memoryd.core import State, worst_state
from memoryd.errors import (
    BackendError,
    ConfigError,
    MemorydError,
    ProfileMismatch,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreTooNew,
)
from memoryd.hosts import Check

__all__ = ["REPAIR", "RESTORE", "broken", "doubtful", "fine", "remedy_of", "state_of"]

RESTORE = "restore the last backup: memoryd restore FILE"
REPAIR = f"memoryd repair; else {RESTORE}"


def fine(name: str, said: str) -> Check:
    return Check(name, "ok", said)


def doubtful(name: str, said: str, remedy: str) -> Check:
    """It works, or may work, and somebody should look."""
    return Check(name, "warn", said, remedy)


def broken(name: str, said: str, remedy: str) -> Check:
    return Check(name, "fail", said, remedy)


def remedy_of(error: MemorydError, otherwise: str = REPAIR) -> str:
    """What to do about an error of a store; ``otherwise`` where it is damage, or nothing that is known here."""
    match error:
        case StoreTooNew():
            return "upgrade memoryd: pip install --upgrade memoryd"
        case ProfileMismatch():
            return "use the home that it belongs to, or make the copy a profile of its own: memoryd profiles rekey NAME"
        case StoreFull():
            return "free some space on this disk"
        case StoreReadOnly():
            return "check owner, mode and mount of the file and its directory"
        case StoreLocked():
            return "let the process that holds it go on, or end it"
        case BackendError() | ConfigError():
            return "see the checks of the settings and the backends above"
        case _:
            return otherwise


def state_of(checks: Iterable[Check]) -> State:
    """*broken* where one fails, *degraded* where one warns, else *ok*."""
    states: dict[str, State] = {"fail": "broken", "warn": "degraded", "ok": "ok", "skip": "ok"}
    return worst_state(states[check.state] for check in checks)
