"""How the daemon is told to end: the first signal drains, a second one does not wait."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import trio

__all__ = ["wait_for_end"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def wait_for_end(
    drain: Callable[[], None], leave: Callable[[], None], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Call ``drain`` at the first signal.  At a second one call ``leave``, which must be quick, and end the process at once."""
    # who started us under nohup wants us to outlive the terminal
    wanted = [number for number in _SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]
    with trio.open_signal_receiver(*wanted) as signals:
        task_status.started()
        await anext(signals)
        drain()
        number = await anext(signals)
        leave()
        os._exit(128 + number)
