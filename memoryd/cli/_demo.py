"""``memoryd demo``: four steps on a real transcript, with real processes, a real kill and writes that really fail."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs

from memoryd.checkpoint import read_transcript
from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import busy, one_line, write_json, write_line

_QUESTION = "which encoding does the warehouse scanner need"
_ANSWER = "utf-8-sig"
_SESSION = "demo"


@attrs.frozen(slots=True)
class Step:
    """One step: its mark, whether it went as memoryd promises, and what was seen."""

    name: str
    ok: bool
    seen: str


@command(name="demo")
@pass_options
def demo(options: Options) -> int:
    """Four steps on a real transcript, in a home of its own that is removed afterwards.

    \b
      ACCEPTED   a process records turns and is killed with SIGKILL after the last answer
      RECALLED   another process finds what was said
      REFUSED    a checkpoint whose writes fail says why, and that nothing may be cut
      RESTORED   a checkpoint gives the transcript back, byte for byte

    \b
    Examples:
      memoryd demo
      memoryd demo --json
    """
    steps: list[Step] = []
    with tempfile.TemporaryDirectory(prefix="memoryd-demo-") as home:
        stage = Stage(Path(home))
        for play in (stage.accepted, stage.recalled, stage.refused, stage.restored):
            with busy(play.__name__):
                steps.append(play())
            if not options.json:
                write_line(f"{steps[-1].name if steps[-1].ok else 'FAILED':<9} {steps[-1].seen}")
    if options.json:
        write_json({"steps": [attrs.asdict(step) for step in steps]})
    return 0 if all(step.ok for step in steps) else 1


class Stage:
    """The demo's home, and the processes that play in it."""

    def __init__(self, home: Path) -> None:
        self._home = home / "home"
        self._file = home / "transcript.jsonl"
        self._file.write_bytes((files("memoryd.cli") / "transcript.jsonl").read_bytes())
        self._turns = turns_of(read_transcript(self._file.read_bytes()))

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "memoryd", *arguments, "--home", str(self._home), "--session", _SESSION]

    def _run(self, *command: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, capture_output=True, env=_environment(), timeout=120, check=False)

    def accepted(self) -> Step:
        process = subprocess.Popen(
            self._command("turn"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment()
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(json.dumps(turn).encode() + b"\n" for turn in self._turns))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline() or b"{}") for _ in self._turns]
        process.send_signal(signal.SIGKILL)
        process.communicate()
        journaled = sum(answer.get("state") == "journaled" for answer in answers)
        return Step("ACCEPTED", journaled == len(self._turns), f"{journaled} turns journaled, then kill -9 of process {process.pid}")

    def recalled(self) -> Step:
        answer = _json(self._run(*self._command("recall", _QUESTION, "--json")))
        head = (_json(self._run(*self._command("status", "--json"))).get("log") or {}).get("head")
        texts = [hit["text"] for hit in answer.get("hits", [])]
        found = next((text for text in texts if _ANSWER in text), "")
        kept = f"after restart {head} of {len(self._turns)} turns are there"
        return Step("RECALLED", head == len(self._turns) and bool(found), f'{kept}; "{_QUESTION}?" finds: {_around(found, _ANSWER)}')

    def refused(self) -> Step:
        # a limit of the operating system on the size of a file: every write beyond it fails, as on a full disk
        limited = "ulimit -f 0; exec " + shlex.join(self._command("checkpoint", "create", str(self._file)))
        done = self._run("/bin/sh", "-c", limited)
        said = one_line(done.stderr.decode("utf-8", "replace"))
        return Step("REFUSED", done.returncode == 2 and said.startswith("BLOCKED_MISSING_PREREQUISITE"), said)

    def restored(self) -> Step:
        receipt = _json(self._run(*self._command("checkpoint", "create", str(self._file), "--json")))
        identity = str(receipt.get("id", ""))
        given = self._file.read_bytes()
        whole = self._run(*self._command("checkpoint", "restore", identity, "--full")).stdout
        rows = _json(self._run(*self._command("checkpoint", "restore", identity, "--json"))).get("messages")
        same = whole == given and rows == read_transcript(given)
        digest = hashlib.sha256(whole).hexdigest()[:16]
        return Step("RESTORED", same, f"{receipt.get('rows')} messages, {len(whole)} bytes, sha256 {digest}... equal byte for byte")


def turns_of(rows: list[Any]) -> list[dict[str, str]]:
    """The turns of a transcript: what the user said, and the last thing that was answered before the user spoke again."""
    turns: list[dict[str, str]] = []
    for row in rows:
        if row["role"] == "user":
            turns.append({"user": _text(row["content"]), "assistant": "", "turn_id": f"demo-{len(turns) + 1}"})
        elif row["role"] == "assistant" and turns:
            turns[-1]["assistant"] = _text(row["content"])
    return turns


def _around(text: str, word: str) -> str:
    at = text.find(word)
    return f"...{one_line(text[max(0, at - 70) : at + 40])}..."


def _text(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(part["text"] for part in content if part["type"] == "text")


def _json(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _environment() -> Mapping[str, str]:
    """The caller's, without what would point the demo elsewhere or change what it shows."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORYD_", "HERMES_"))}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "XDG_CONFIG_HOME": "/nonexistent"}
