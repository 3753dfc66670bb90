"""The dialect of Claude Code: its payloads, its transcript, its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memoryd.core import evidence_of
from memoryd.hosts import GateCapability, Heard, Kind, Row
from memoryd.wire import HookReply
from memoryd_hooks._payload import at_of, mapping, paths_in, text_of, transcript_in, why_in, word

__all__ = ["Claude"]

_KINDS: Mapping[str, Kind] = {
    "PreCompact": "gate",
    "PostCompact": "compacted",
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "Stop": "turn",
    "SubagentStop": "agent-turn",
    "SessionEnd": "end",
}
_VETO_SINCE = (2, 1, 105)
_INJECTED = 10_000  # characters that the host takes; more goes to a file of its own
_NO_HISTORY = "CLAUDE_CODE_SKIP_PROMPT_HISTORY"


class Claude:
    """Exit code 2 with the reason on stderr refuses; what a gate prints on stdout goes to the summariser as instructions."""

    name = "claude"

    def capability(self, version: str = "") -> GateCapability:
        return "hard-veto" if not version or _numbers(version) >= _VETO_SINCE else "observe-only"

    def kind(self, event: str) -> Kind:
        return _KINDS.get(event, "other")

    def hear(self, event: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> Heard:
        kind, session = self.kind(event), word(payload, "session_id")
        transcript, problem = (None, "") if environment.get(_NO_HISTORY) else transcript_in(payload)
        agent = word(payload, "agent_type") or word(payload, "agent_id") if kind == "agent-turn" else ""
        if kind == "agent-turn":
            transcript = word(payload, "agent_transcript_path") or None
            problem = ""
        return Heard(
            kind=kind, session=session, transcript=transcript, cwd=word(payload, "cwd"), prompt=word(payload, "prompt"),
            why=why_in(payload),
            said=word(payload, "last_assistant_message"), agent=agent,
            problem=problem if session else "the payload names no session",
        )  # fmt: skip

    # -- the transcript -----------------------------------------------------------------------------------------------------

    def row(self, record: Mapping[str, Any]) -> Row | None:
        match record.get("type"):
            case "user":
                return _user_row(record)
            case "assistant":
                return _assistant_row(record)
            case "system" if record.get("subtype") == "compact_boundary":
                return Row(kind="boundary", id=word(record, "uuid"), at=at_of(record.get("timestamp")))
            case _:
                return None

    def time(self, record: Mapping[str, Any]) -> int | None:
        return at_of(record.get("timestamp"))

    # -- answers ------------------------------------------------------------------------------------------------------------

    def allow(self, event: str, note: str) -> HookReply:
        return HookReply(0, note.encode("utf-8", "replace")[:_INJECTED])

    def refuse(self, event: str, reason: str) -> HookReply:
        return HookReply(2, b"", reason.encode("utf-8", "replace") + b"\n")

    def inject(self, event: str, text: str) -> HookReply:
        return HookReply(0, text[:_INJECTED].encode("utf-8", "replace"))


def _user_row(record: Mapping[str, Any]) -> Row:
    content = mapping(record, "message").get("content", "")
    id, at = word(record, "uuid"), at_of(record.get("timestamp"))
    if _is_tool_result(content):
        return Row(kind="tool", id=id, at=at)
    text = text_of(content)
    common: dict[str, Any] = {"id": id, "at": at, "role": "user", "text": text, "content": content}
    if record.get("isCompactSummary") or record.get("isVisibleInTranscriptOnly"):
        return Row(kind="summary", **common)
    if record.get("isSidechain"):
        return Row(kind="sidechain", agent=word(record, "agentId"), **common)
    if record.get("isMeta") or (text.strip() and evidence_of({"role": "user", "content": text}) is None):
        return Row(kind="host", **common)
    return Row(kind="user", **common)


def _assistant_row(record: Mapping[str, Any]) -> Row:
    message = mapping(record, "message")
    content = message.get("content", "")
    calls = _tool_calls(content)
    return Row(
        kind="host" if record.get("isApiErrorMessage") else "sidechain" if record.get("isSidechain") else "assistant",
        id=word(record, "uuid"), at=at_of(record.get("timestamp")), role="assistant", text=text_of(content), content=content,
        group=word(message, "id"), agent=word(record, "agentId"), tools=tuple([word(call, "name") for call in calls]),
        paths=tuple([path for call in calls for path in paths_in(call.get("input"))]),
    )  # fmt: skip


def _is_tool_result(content: object) -> bool:
    return isinstance(content, list) and any(isinstance(part, dict) and part.get("type") == "tool_result" for part in content)


def _tool_calls(content: object) -> list[dict[str, Any]]:
    parts = content if isinstance(content, list) else ()
    return [part for part in parts if isinstance(part, dict) and part.get("type") == "tool_use"]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
