"""When to try again: pure decisions that the writer tasks obey."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from memoryd.core._value import Value

__all__ = ["GiveUp", "RetryPolicy", "Restart", "Verdict", "after_crash", "backoff"]


@attrs.frozen(slots=True, eq=False, repr=False)
class RetryPolicy(Value):
    """Capped exponential backoff with full jitter; all times in seconds."""

    first: float = 0.5
    cap: float = 60.0
    server_cap: float = 300.0


def backoff(policy: RetryPolicy, attempt: int, jitter: float, retry_after: float | None = None) -> float:
    """Seconds to wait before attempt number ``attempt`` + 1 (``attempt`` counts failures so far, from 1).

    ``jitter`` is a random number in [0, 1).  A server's ``retry_after`` is honoured up to ``policy.server_cap``.
    """
    ceiling = min(policy.cap, policy.first * 2.0 ** min(attempt - 1, 30))
    waited = ceiling * (0.5 + jitter / 2)
    if retry_after is not None and retry_after > 0:
        return max(waited, min(retry_after, policy.server_cap))
    return waited


@attrs.frozen(slots=True, eq=False, repr=False)
class Restart(Value):
    """Start the child again after ``delay`` seconds."""

    delay: float


@attrs.frozen(slots=True, eq=False, repr=False)
class GiveUp(Value):
    """The child crashed too often: leave it down and say *broken*."""


Verdict: TypeAlias = Restart | GiveUp


def after_crash(crashes: tuple[float, ...], now: float, *, limit: int = 5, window: float = 60.0) -> Verdict:
    """What to do with a child that crashed at ``now``, given the times of its earlier crashes (seconds, any one clock)."""
    recent = [at for at in crashes if now - at < window]
    if len(recent) + 1 > limit:
        return GiveUp()
    return Restart(min(5.0, 0.1 * 2.0 ** len(recent)))
