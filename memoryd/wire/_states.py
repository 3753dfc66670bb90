"""The states of a connection, for either side, and every step between them.  Code and documentation are drawn from these tables.

``<`` is what comes in, ``>`` what goes out, seen from that side.  A step that a state does not have is a protocol error.
"""

from __future__ import annotations

from collections.abc import Mapping

from memoryd.errors import ProtocolError

__all__ = ["CLIENT", "MEANING", "SERVER", "Machine"]

MEANING: Mapping[str, str] = {
    "new": "connected; nothing was said yet",
    "greeting": "the client has said `hello`; the daemon opens the profile",
    "open": "calls and answers, in any number and order",
    "closing": "the daemon is ending: what is in flight is answered, new calls are refused",
    "ended": "the client will say nothing more; what is in flight is answered",
    "hook": "a hook frame came instead of `hello`; its reply ends the connection",
    "closed": "the end; what is sent or received now is dropped",
}

Steps = Mapping[str, Mapping[str, str]]

SERVER: Steps = {
    "new": {"< hello": "greeting", "< hook": "hook", "< end": "closed", "< garbage": "closed"},
    "greeting": {"> welcome": "open", "> refusal": "closed", "< end": "closed", "< garbage": "closed"},
    "open": {
        "< call": "open", "> answer": "open", "> progress": "open", "> closing": "closing", "< end": "ended", "< garbage": "closed",
    },
    "closing": {
        "< call": "closing", "> answer": "closing", "> progress": "closing", "> closing": "closing", "< end": "ended",
        "< garbage": "closed",
    },
    "ended": {"> answer": "ended", "> progress": "ended", "> closing": "ended"},
    "hook": {"< end": "hook", "> reply": "closed", "< garbage": "closed"},
    "closed": dict.fromkeys(("< end", "> welcome", "> refusal", "> answer", "> progress", "> closing", "> reply"), "closed"),
}  # fmt: skip

CLIENT: Steps = {
    "new": {"> hello": "greeting", "< end": "closed", "< garbage": "closed"},
    "greeting": {"< welcome": "open", "< refusal": "closed", "< end": "closed", "< garbage": "closed"},
    "open": {
        "> call": "open", "< answer": "open", "< progress": "open", "< closing": "closing", "< end": "closed", "< garbage": "closed",
    },
    "closing": {"< answer": "closing", "< progress": "closing", "< end": "closed", "< garbage": "closed"},
    "closed": {"< end": "closed"},
}  # fmt: skip


class Machine:
    """Where one side of a connection is."""

    __slots__ = ("_steps", "state")

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.state = "new"

    def may(self, step: str) -> bool:
        return step in self._steps[self.state]

    def step(self, step: str) -> None:
        """Go on.  Raises :class:`ProtocolError` for a step that this state does not have, and stays where it is."""
        following = self._steps[self.state].get(step)
        if following is None:
            raise ProtocolError(f"{step[2:]!r} is out of turn: the connection is {self.state}")
        self.state = following
