"""One call and its retries: how long to wait for an answer, and whether to ask again.  Decisions only; who calls obeys.

Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from memoryd.errors import (
    CheckpointBlocked,
    ClosedError,
    ConnectionLost,
    DaemonBusy,
    DaemonUnavailable,
    DeadlineExceeded,
    MemorydError,
    ProtocolError,
)
from memoryd.wire import METHODS

__all__ = ["AWAY", "OPENING", "Attempts", "is_outage", "new_event_id", "not_archived", "too_large"]

OPENING = 10.0  # seconds that a daemon may take to open a profile
_SLACK = 2.0  # seconds beyond the runtime's own deadline until the answer has to be here
_TIGHT = 0.1  # the same for what is better empty than late
AWAY = 3.0  # seconds that a daemon may be away, as in a restart, before a call gives up
_FIRST, _LAST = 0.02, 0.5  # seconds between tries


def new_event_id() -> str:
    """128 random bits, as the wire has them."""
    return os.urandom(16).hex()


def is_outage(error: BaseException) -> bool:
    """Whether the daemon is away, so that the same call may succeed when it is back."""
    return isinstance(error, (DaemonUnavailable, ConnectionLost, DaemonBusy, ClosedError))


class Attempts:
    """``now`` are seconds of any clock that goes on, the same in all calls."""

    def __init__(self, method: str, arguments: Mapping[str, Any], deadlines: Mapping[str, float], after: int, now: float) -> None:
        self._method = METHODS[method]
        self._delay = _FIRST
        self._away_until: float | None = None
        self._tries = 0
        self.after = after
        self.event_id = new_event_id() if self._method.again == "by event id" else None
        self._silence = self._allowed(arguments, deadlines) + (_TIGHT if method == "prefetch" else _SLACK)
        self.until = now + self._silence

    def _allowed(self, arguments: Mapping[str, Any], deadlines: Mapping[str, float]) -> float:
        given = arguments.get("timeout")
        if isinstance(given, int | float) and given >= 0:
            return float(given)
        return deadlines.get(self._method.deadline, self._method.seconds)

    def common(self) -> dict[str, Any]:
        """What to send beside the arguments, this time."""
        self._tries += 1
        if self.event_id is None:
            return {}
        return {"event_id": self.event_id} if self._tries == 1 else {"event_id": self.event_id, "retry": self.after}

    def heard(self, now: float) -> None:
        """The daemon is at work: its silence begins anew."""
        self.until = max(self.until, now + self._silence)

    def delay_after(self, error: MemorydError, now: float) -> float | None:
        """Seconds until the next try, or None where there is none."""
        if self._away_until is None:
            self._away_until = now + AWAY
        if not is_outage(error) or now + self._delay > min(self.until, self._away_until):
            return None
        delay, self._delay = self._delay, min(self._delay * 2, _LAST)
        return delay

    def late(self) -> DeadlineExceeded:
        """What to raise when ``until`` has passed."""
        return DeadlineExceeded(f"{self._method.name}: the daemon did not answer within {self._silence:g} s; see 'memoryd status'")


def not_archived(error: Exception) -> CheckpointBlocked:
    """A daemon that cannot be asked is a refusal: the gate fails closed."""
    return CheckpointBlocked("daemon", f"the daemon could not archive it ({error}).", "Start 'memoryd serve', or set MEMORYD_GATE=off.")


def too_large(method: str, size: int, limits: Mapping[str, int]) -> None:
    """Raises :class:`ProtocolError` for a frame that the daemon would cut off."""
    most = limits.get("frame", size)
    if size > most:
        raise ProtocolError(f"{method}: a call of {size} bytes; this daemon takes at most {most} (daemon.frame_bytes)")

