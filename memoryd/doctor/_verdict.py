"""How a check is said, and what several of them mean together."""

from __future__ import annotations

from collections.abc import Iterable

from memoryd.core import State, worst_state
from memoryd.hosts import Check

__all__ = ["broken", "doubtful", "fine", "state_of"]


def fine(name: str, said: str) -> Check:
    return Check(name, "ok", said)


def doubtful(name: str, said: str, remedy: str) -> Check:
    """It works, or may work, and somebody should look."""
    return Check(name, "warn", said, remedy)


def broken(name: str, said: str, remedy: str) -> Check:
    return Check(name, "fail", said, remedy)


def state_of(checks: Iterable[Check]) -> State:
    """*broken* where one fails, *degraded* where one warns, else *ok*."""
    states: dict[str, State] = {"fail": "broken", "warn": "degraded", "ok": "ok", "skip": "ok"}
    return worst_state(states[check.state] for check in checks)
