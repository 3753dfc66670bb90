"""The dialect of Gemini CLI: it tells of a compression and goes on whatever it hears, so that nothing here is a promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memoryd.hosts import GateCapability, Heard, Kind, Row
from memoryd.wire import HookReply
from memoryd_hooks._payload import at_of, transcript_in, why_in, word

__all__ = ["Gemini"]

_KINDS: Mapping[str, Kind] = {"PreCompress": "gate", "SessionStart": "start", "SessionEnd": "end"}


class Gemini:
    """The format of its session file is not documented: the gate archives the bytes as they are, and no turns are read from it."""

    name = "gemini"

    def capability(self, version: str = "") -> GateCapability:
        return "observe-only"

    def kind(self, event: str) -> Kind:
        return _KINDS.get(event, "other")

    def hear(self, event: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> Heard:
        session = word(payload, "session_id")
        transcript, problem = transcript_in(payload)
        return Heard(
            kind=self.kind(event), session=session, transcript=transcript, cwd=word(payload, "cwd"),
            why=why_in(payload),
            problem=problem if session else "the payload names no session",
        )  # fmt: skip

    def row(self, record: Mapping[str, Any]) -> Row | None:
        return None

    def time(self, record: Mapping[str, Any]) -> int | None:
        return at_of(record.get("timestamp"))

    def allow(self, event: str, note: str) -> HookReply:
        return HookReply()

    def refuse(self, event: str, reason: str) -> HookReply:
        """The host ignores it and shows the reason."""
        return HookReply(2, b"", reason.encode("utf-8", "replace") + b"\n")

    def inject(self, event: str, text: str) -> HookReply:
        return HookReply()
