"""Plays the host: runs the command as the host does, heeds its answer as documented, writes the transcript as the host would.

No agent program is run.  What a host does with exit codes and streams was measured against Claude Code 2.1.332 and Codex 0.171.0.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

__all__ = ["HOOK", "ClaudeHost", "CodexHost", "Done", "Host", "fixture", "full_disk", "patient", "payload", "read_only"]

HOOK = Path(__file__).parents[3] / "memoryd/hook.py"
FIXTURES = Path(__file__).parent / "fixtures"
HOST_TIMEOUT = 30.0


@attrs.frozen(slots=True)
class Done:
    """How a hook ended.  ``seconds`` is wall time."""

    code: int
    out: bytes
    err: bytes
    seconds: float = 0.0

    @property
    def silent(self) -> bool:
        return (self.code, self.out, self.err) == (0, b"", b"")


def fixture(folder: str, name: str) -> Path:
    return FIXTURES / folder / name


def payload(folder: str, name: str, **changes: Any) -> dict[str, Any]:
    """A payload as the host of that version sends it."""
    return {**json.loads(fixture(folder, f"{name}.json").read_text()), **changes}


class Host:
    """One session of a host in ``folder``.  ``before`` runs in the hook's process, before the hook."""

    name = ""
    version = ""

    def __init__(self, folder: Path, session: str = "s-1", env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.session = session
        self.cwd = folder / "project"
        self.cwd.mkdir(parents=True, exist_ok=True)
        self.transcript = folder / f"{session}.jsonl"
        self.env = {**os.environ, **(env or {})}
        self.python = sys.executable
        self.hook = HOOK
        self.installed: dict[str, str] = {}
        self.before: Callable[[], None] | None = None
        self.count = 0
        self.hooks: list[tuple[str, Done]] = []
        self.said: list[tuple[str, str]] = []
        self.injected: list[bytes] = []

    def run(self, event: str, given: Mapping[str, Any] | bytes) -> Done:
        """The exact command, with the payload on standard input."""
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        command = [self.python, "-I", "-S", str(self.hook), self.name, event]
        if self.installed:
            if event not in self.installed:
                return Done(0, b"", b"")
            command = ["sh", "-c", self.installed[event]]
        begun = time.monotonic()
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=HOST_TIMEOUT, cwd=self.cwd, env=self.env, check=False,
            preexec_fn=self.before,
        )  # fmt: skip
        result = Done(done.returncode, done.stdout, done.stderr, time.monotonic() - begun)
        self.hooks.append((event, result))
        return result

    def tell(self, event: str, name: str | None = None, **more: Any) -> Done:
        """Run the hook of ``event`` with the payload of the fixture ``name``."""
        common = {"session_id": self.session, "transcript_path": str(self.transcript), "cwd": str(self.cwd)}
        return self.run(event, payload(f"{self.name}-{self.version}", name or event, **{**common, **more}))

    def append(self, *lines: Mapping[str, Any]) -> None:
        with self.transcript.open("a") as stream:
            stream.writelines(json.dumps(line) + "\n" for line in lines)

    def next(self) -> int:
        self.count += 1
        return self.count

    def turn(self, user: str, assistant: str) -> None:
        """A prompt, what the hooks add to it, and the answer."""
        self.tell("UserPromptSubmit", prompt=user)
        self.write_user(user)
        self.write_assistant(assistant)
        self.said.append((user, assistant))
        self.tell("Stop", last_assistant_message=assistant)

    def use_settings(self, home: Path) -> None:
        """From now on the commands that ``memoryd install`` has put into the settings below ``home``."""
        raise NotImplementedError

    def _take(self, hooks: Mapping[str, Any]) -> None:
        self.installed = {event: group["hooks"][0]["command"] for event, (group,) in hooks.items()}

    def write_user(self, text: str) -> None:
        raise NotImplementedError

    def write_assistant(self, text: str) -> None:
        raise NotImplementedError


class ClaudeHost(Host):
    name, version = "claude", "2.1.332"
    on_failure_block = False

    def use_settings(self, home: Path) -> None:
        self._take(json.loads((home / ".claude/settings.json").read_text())["hooks"])

    def _line(self, kind: str, **more: Any) -> dict[str, Any]:
        number = self.next()
        stamp = f"2026-11-29T{10 + number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
        return {
            "parentUuid": f"u-{number - 1}" if number > 1 else None, "isSidechain": False, "type": kind, **more,
            "uuid": f"{self.session}-u-{number}", "timestamp": stamp, "cwd": str(self.cwd), "sessionId": self.session, "version": self.version,
        }  # fmt: skip

    def write_user(self, text: str) -> None:
        self.append(self._line("user", message={"role": "user", "content": text}))

    def write_assistant(self, text: str, tool: str | None = None) -> None:
        """Thinking, a tool call with its result, and the text: one line for each block."""
        message = f"msg_{self.next()}"

        def block(part: dict[str, Any], index: int) -> dict[str, Any]:
            return self._line("assistant", message={"id": message, "role": "assistant", "content": [part]}, apiBlockIndex=index)

        call = {"type": "tool_use", "id": f"toolu_{message}", "name": "Read", "input": {"file_path": tool or "/w/foo/test_a.py"}}
        self.append(block({"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}, 0), block(call, 1))
        result = {"tool_use_id": call["id"], "type": "tool_result", "content": "1\timport time"}
        self.append(self._line("user", message={"role": "user", "content": [result]}, toolUseResult={"type": "text"}))
        last = {"id": f"msg_{self.next()}", "role": "assistant", "content": [{"type": "text", "text": text}]}
        self.append(self._line("assistant", message=last))

    def compact(self, trigger: str = "auto", summary: str = "Summary: things were done.") -> tuple[bool, bytes]:
        """(whether the context was compacted, the reason or the instructions for the summariser)."""
        done = self.tell("PreCompact", f"PreCompact-{trigger}")
        if self.is_blocked(done):
            return False, done.err or done.out
        self.tell("SessionStart", "SessionStart-compact")
        if done_start := self.hooks[-1][1].out:
            self.injected.append(done_start)
        self.tell("PostCompact", trigger=trigger, compact_summary=f"<summary>{summary}</summary>")
        self.append({**self._line("system", subtype="compact_boundary", content="Conversation compacted"), "parentUuid": None})
        opening = f"This session is being continued from a previous conversation.. {summary}"
        self.append(self._line("user", message={"role": "user", "content": opening}, isVisibleInTranscriptOnly=True, isCompactSummary=True))
        return True, done.out

    def is_blocked(self, done: Done) -> bool:
        if done.code == 2:
            return True
        if done.code == 0 and done.out.lstrip().startswith(b"{"):
            return bool(json.loads(done.out).get("decision") == "block")
        return self.on_failure_block and done.code != 0


class CodexHost(Host):
    name, version = "codex", "0.171.0"

    def use_settings(self, home: Path) -> None:
        self._take(tomllib.loads((home / ".codex/config.toml").read_text())["hooks"])

    def _line(self, kind: str, body: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        number = self.next()
        stamp = f"2026-11-29T10:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
        return {"timestamp": stamp, "ordinal": number, "type": kind, "payload": body, **more}

    def _message(self, role: str, text: str, part: str, **more: Any) -> dict[str, Any]:
        body = {"type": "message", "id": f"msg_{self.count}", "role": role, "content": [{"type": part, "text": text}]}
        return self._line("response_item", body, metadata={"history_sequence": self.count, **more})

    def write_user(self, text: str) -> None:
        if not self.count:
            self.append(self._line("session_meta", {"session_id": self.session, "cwd": str(self.cwd), "cli_version": self.version}))
        item = {"type": "UserMessage", "id": f"i-{self.count}", "content": [{"type": "text", "text": text}]}
        self.append(self._message("user", text, "input_text"), self._line("event_msg", {"type": "item_completed", "item": item}))

    def write_assistant(self, text: str) -> None:
        call = {"type": "function_call", "id": f"fc_{self.count}", "name": "shell", "arguments": "{}", "call_id": f"c_{self.count}"}
        output = {"type": "function_call_output", "id": f"fco_{self.count}", "call_id": call["call_id"], "output": "hi"}
        self.append(self._line("response_item", call), self._line("response_item", output), self._message("assistant", text, "output_text"))

    def compact(self, trigger: str = "auto", summary: str = "Summary: things were done.") -> tuple[bool, bytes]:
        done = self.tell("PreCompact", f"PreCompact-{trigger}")
        if self.is_blocked(done):
            self.append(self._line("event_msg", {"type": "turn_aborted", "reason": "interrupted"}))
            return False, done.out
        self.append(self._message("assistant", summary, "output_text", compaction_output=True))
        self.append(self._line("compacted", {"message": f"Another language model started.. {summary}", "replacement_history": []}))
        self.tell("SessionStart", "SessionStart-compact")
        if started := self.hooks[-1][1].out:
            self.injected.append(started)
        self.tell("PostCompact", trigger=trigger)
        return True, done.out

    def is_blocked(self, done: Done) -> bool:
        """Only exit code 0 with one object of known keys whose ``continue`` is false."""
        if done.code != 0 or not done.out.strip():
            return False
        try:
            said = json.loads(done.out)
        except ValueError:
            return False
        known = {"continue", "stopReason", "suppressOutput", "systemMessage"}
        return isinstance(said, dict) and set(said) <= known and said.get("continue") is False


def patient(host: Host) -> None:
    """A hook program that waits for its daemon however busy the machine is: for tests of what the daemon answers."""
    host.hook = host.folder / "patient_hook.py"
    text = HOOK.read_text()
    assert text.count("TOLD = 0.22 ") == 1
    host.hook.write_text(text.replace("TOLD = 0.22 ", "TOLD = 20 "))


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing in ``folder`` can be written: for root by a mount, for others by permissions."""
    if os.geteuid() != 0:
        places = [folder, *folder.rglob("*")]
        modes = [(place, place.stat().st_mode) for place in places]
        for place in places:
            place.chmod(0o500 if place.is_dir() else 0o400)
        try:
            yield
        finally:
            for place, mode in modes:
                place.chmod(mode)
        return
    subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def full_disk() -> None:
    """For ``before``: this process and its children can make no file longer than it is."""
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
