"""Children of the nursery: each one contained, counted, restarted with backoff, and given up after five crashes in a minute."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable
from typing import Literal

import attrs
import trio

from memoryd.core import GiveUp, Restart, TaskStatus, after_crash
from memoryd.log import Log

__all__ = ["Child", "supervise"]


@attrs.define(slots=True, eq=False, repr=False)
class Child:
    """What is known of one supervised task."""

    name: str
    run: Callable[[], Awaitable[None]]
    state: Literal["running", "restarting", "failed", "ended"] = "running"
    crashes: tuple[float, ...] = ()
    last_error: str = ""
    last_traceback: str = ""

    def status(self) -> TaskStatus:
        return TaskStatus(self.name, self.state, len(self.crashes), self.last_error)


async def supervise(child: Child, log: Log, on_bug: Literal["contain", "raise"]) -> None:
    """Run ``child`` until it ends, is cancelled, or has crashed too often.  With ``on_bug="raise"`` a bug ends the runtime."""
    while True:
        try:
            await child.run()
        except Exception as error:  # the edge of a child: whatever escapes is a bug; the log and the gate must go on without it
            if on_bug == "raise":
                child.state = "failed"
                raise
            verdict = _count(child, error)
        else:
            child.state = "ended"
            return
        log.error("runtime.child_crashed", child=child.name, error=child.last_error, crashes=len(child.crashes))
        match verdict:
            case GiveUp():
                child.state = "failed"
                return
            case Restart(delay):
                child.state = "restarting"
                await trio.sleep(delay)
                child.state = "running"


def _count(child: Child, error: Exception) -> Restart | GiveUp:
    now = trio.current_time()
    verdict = after_crash(child.crashes, now)
    child.crashes = (*child.crashes[-49:], now)
    child.last_error = type(error).__name__
    child.last_traceback = "".join(traceback.format_tb(error.__traceback__))  # frames only: a message could quote a text
    return verdict
