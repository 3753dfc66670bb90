"""The dialect of Codex: its payloads, its rollout file, its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memoryd.core import evidence_of
from memoryd.hosts import GateCapability, Heard, Kind, Row
from memoryd.wire import HookReply
from memoryd_hooks._payload import at_of, mapping, paths_in, text_of, transcript_in, why_in, word

__all__ = ["Codex"]

_KINDS: Mapping[str, Kind] = {
    "PreCompact": "gate",
    "PostCompact": "compacted",
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "Stop": "turn",
    "SubagentStop": "agent-turn",
    "SessionEnd": "end",
}
_INJECTED = 10_000
_REASON = 2_000


class Codex:
    """One object with ``continue`` false and a ``stopReason`` refuses, and nothing else does: not exit code 2, not a third key."""

    name = "codex"

    def capability(self, version: str = "") -> GateCapability:
        return "hard-veto"

    def kind(self, event: str) -> Kind:
        return _KINDS.get(event, "other")

    def hear(self, event: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> Heard:
        session = word(payload, "session_id")
        transcript, problem = transcript_in(payload)
        return Heard(
            kind=self.kind(event), session=session, transcript=transcript, cwd=word(payload, "cwd"),
            prompt=word(payload, "prompt"), why=why_in(payload),
            said=word(payload, "last_assistant_message"), agent=word(payload, "agent_type") or word(payload, "agent_id"),
            problem=problem if session else "the payload names no session",
        )  # fmt: skip

    # -- the rollout file ---------------------------------------------------------------------------------------------------

    def row(self, record: Mapping[str, Any]) -> Row | None:
        """What was said is there twice, as ``response_item`` and as ``event_msg``: the first counts."""
        payload = mapping(record, "payload")
        at, place = at_of(record.get("timestamp")), str(record.get("ordinal", ""))
        match record.get("type"), payload.get("type"):
            case "response_item", "message":
                return _message_row(payload, mapping(record, "metadata"), at, place)
            case "response_item", "function_call":
                arguments = _arguments(payload.get("arguments"))
                return Row(
                    kind="assistant", id=word(payload, "id") or place, at=at, role="assistant", tools=(word(payload, "name"),),
                    paths=tuple(paths_in(arguments)),
                )  # fmt: skip
            case "response_item", "function_call_output":
                return Row(kind="tool", id=word(payload, "id") or place, at=at)
            case "compacted", _:
                return Row(kind="boundary", id=f"compacted-{place}", at=at, text=word(payload, "message"))
            case _:
                return None

    def time(self, record: Mapping[str, Any]) -> int | None:
        return at_of(record.get("timestamp"))

    # -- answers ------------------------------------------------------------------------------------------------------------

    def allow(self, event: str, note: str) -> HookReply:
        return HookReply()

    def refuse(self, event: str, reason: str) -> HookReply:
        return HookReply(0, json.dumps({"continue": False, "stopReason": reason[:_REASON]}).encode("ascii"))

    def inject(self, event: str, text: str) -> HookReply:
        if not text:
            return HookReply()
        body = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text[:_INJECTED]}}
        return HookReply(0, json.dumps(body).encode("ascii"))


def _message_row(payload: Mapping[str, Any], metadata: Mapping[str, Any], at: int | None, place: str) -> Row | None:
    role, content = word(payload, "role"), payload.get("content", "")
    text, id = text_of(content), word(payload, "id") or place
    if metadata.get("compaction_output") or mapping(payload, "metadata").get("compaction_output"):
        return Row(kind="summary", id=id, at=at, role=role, text=text, content=content)
    if role not in ("user", "assistant") or (text.strip() and evidence_of({"role": role, "content": text}) is None):
        return Row(kind="host", id=id, at=at, role=role, text=text, content=content)
    return Row(kind="user" if role == "user" else "assistant", id=id, at=at, role=role, text=text, content=content)


def _arguments(text: object) -> object:
    """The arguments of a call are JSON in a text."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
