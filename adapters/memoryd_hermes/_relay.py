"""The memory through memoryd's daemon, where the user wants that and it is up; it has the methods of a memory in this process.

What the daemon does not acknowledge counts as refused: it is told again with the same key, to the daemon or to the store itself.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from memoryd.blocking import Memory
from memoryd.client.blocking import Client
from memoryd.core import Config
from memoryd.errors import DaemonError, DaemonUnavailable, DeadlineExceeded, NotDurable

__all__ = ["open_relayed"]

_ACKNOWLEDGED = 0.5  # seconds that a turn waits for the daemon's word


class Relayed(Client):
    """One profile of a daemon.  ``config`` is what this process knows: limits of calls come from the daemon."""

    def __init__(self, home: Path, config: Config) -> None:
        super().__init__(home, "default")
        self.config = config

    def sync_turn(self, user: str, assistant: str, **more: Any) -> Any:
        """As :meth:`memoryd.Runtime.sync_turn`.  Raises :class:`DaemonUnavailable` where the daemon does not say that it has it."""
        accepted = super().sync_turn(user, assistant, **more)
        if accepted.state == "held" and accepted.reason == "daemon":
            accepted = self.settled(accepted, _ACKNOWLEDGED)
        if accepted.state == "held" and accepted.reason == "daemon":
            raise DaemonUnavailable("the daemon did not acknowledge the turn")
        return accepted

    def close(self) -> None:
        with suppress(NotDurable):  # what was not acknowledged was refused, and is told again
            super().close()


def open_relayed(path: Path, config: Config) -> Memory:
    """Through the daemon where one serves the home ``path``, else in this process."""
    try:
        return cast("Memory", Relayed(path, config))
    except (DaemonError, DeadlineExceeded):
        return Memory(path, "default", config, fork="reopen")
