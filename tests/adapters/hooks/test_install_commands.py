"""What is written into hosts' settings does what it says, in the shells that hosts use, with whatever is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from memoryd.blocking import Memory
from memoryd.core import scope
from memoryd.hosts import Place, apply_plan, find_host, make_place, parse_json

ODD = "My Döcs & 'x' \"y\" $HOME `id` (1)"
HOSTS = ("claude-code", "codex", "gemini")
SHELLS = [shell for shell in ("sh", "bash") if shutil.which(shell)]
GATES = {"claude-code": "PreCompact", "codex": "PreCompact"}
VETOED = {
    "claude-code": lambda done: done.returncode == 2 and not done.stdout and b"memoryd" in done.stderr,
    "codex": lambda done: done.returncode == 0 and json.loads(done.stdout).keys() == {"continue", "stopReason"} and json.loads(done.stdout)["continue"] is False,
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Place:
    """Everything lies in a path that no shell likes; the interpreter too, by a link."""
    odd = tmp_path / ODD
    (odd / "bin").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(odd))
    monkeypatch.setenv("MEMORYD_HOME", str(odd / "memory"))
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    python = odd / "bin/python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} \"$@\"\n")
    python.chmod(0o755)
    found = make_place()
    return Place(home=found.home, memoryd_home=found.memoryd_home, python=str(python), cwd=odd, environ=found.environ)


def commands(place: Place, host: str) -> Mapping[str, str]:
    """Installs, and gives the command of each event as the host reads it."""
    apply_plan(find_host(host).plan_install(place), place.memoryd_home)
    if host == "codex":
        events = tomllib.loads((place.home / ".codex/config.toml").read_text())["hooks"]
    else:
        folder = ".claude" if host == "claude-code" else ".gemini"
        events = parse_json((place.home / folder / "settings.json").read_text())["hooks"]
    return {event: group["hooks"][0]["command"] for event, (group,) in events.items()}


def run(place: Place, command: str, payload: Mapping[str, object], shell: str = "sh", **environ: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, **environ}
    return subprocess.run([shell, "-c", command], input=json.dumps(payload).encode(), capture_output=True, env=env, cwd=place.home, timeout=60, check=False)


def payload(place: Place, event: str) -> dict[str, object]:
    transcript = place.home / "s-1.jsonl"
    line = {"type": "user", "uuid": "u-1", "sessionId": "s-1", "message": {"role": "user", "content": "Fix the flaky test"}}
    transcript.write_text(json.dumps(line) + "\n")
    return {"session_id": "s-1", "transcript_path": str(transcript), "cwd": str(place.home), "hook_event_name": event, "trigger": "auto"}


@pytest.mark.parametrize(("host", "shell"), [*(("claude-code", shell) for shell in SHELLS), ("codex", "sh"), ("gemini", "sh")])
def test_every_command_runs_in_any_shell_and_any_path(place: Place, host: str, shell: str) -> None:
    for event, command in commands(place, host).items():
        done = run(place, command, payload(place, event), shell)
        assert done.returncode == 0, (event, done)
        assert done.stderr == b""
        if event != "PreCompact" or host == "codex":
            assert done.stdout == b"", event
    if host in GATES:
        with Memory() as memory, scope(user="default"):
            assert [one.session for one in memory.checkpoints()] == ["s-1"]


def remove_python(place: Place) -> None:
    Path(place.python).unlink()


def remove_hook(place: Place) -> None:
    (place.memoryd_home / "bin/memoryd_hook.py").unlink()


def remove_memoryd(place: Place) -> None:
    """A Python that has no memoryd, as after ``pip uninstall memoryd``."""
    bare = os.path.realpath(sys.executable)
    Path(place.python).write_text(f"#!/bin/sh\nexec {bare} \"$@\"\n")


def break_python(place: Place) -> None:
    Path(place.python).write_text("#!/bin/sh\nkill -9 $$\n")


REMOVED = [remove_python, remove_hook, remove_memoryd, break_python]


@pytest.mark.parametrize(
    ("host", "remove"), [("claude-code", remove) for remove in REMOVED] + [("codex", remove_hook), ("gemini", remove_hook)]
)
def test_what_is_gone_never_stops_a_prompt(place: Place, host: str, remove: object) -> None:
    found = commands(place, host)
    assert callable(remove)
    remove(place)
    for event, command in found.items():
        if event in ("PreCompact", "PreCompress"):
            continue
        done = run(place, command, payload(place, event))
        assert done.stdout == b""
        if remove is break_python:
            assert done.returncode != 2, "only that is a refusal"
        else:
            assert (done.returncode, done.stderr) == (0, b""), event


@pytest.mark.parametrize(("shell", "remove"), [("sh", remove) for remove in REMOVED] + [("bash", remove_hook)])
@pytest.mark.parametrize("host", GATES)
def test_a_lost_gate_refuses_and_says_what_to_delete(place: Place, host: str, shell: str, remove: object) -> None:
    command = commands(place, host)["PreCompact"]
    assert callable(remove)
    remove(place)
    done = run(place, command, payload(place, "PreCompact"), shell)
    assert VETOED[host](done), done
    said = (done.stderr if host == "claude-code" else done.stdout).decode()
    assert "delete the" in said
    assert "MEMORYD_GATE" in said
    if remove is not remove_memoryd:
        settings = place.home / (".claude/settings.json" if host == "claude-code" else ".codex/config.toml")
        assert str(settings) in (said if host == "claude-code" else json.loads(said)["stopReason"])
    assert run(place, command, payload(place, "PreCompact"), shell, MEMORYD_GATE="off").returncode == 0


@pytest.mark.parametrize("host", GATES)
def test_without_the_gate_nothing_is_refused(place: Place, host: str) -> None:
    lenient = Place(home=place.home, memoryd_home=place.memoryd_home, python=place.python, cwd=place.cwd, environ=place.environ, options={"gate": "no"})
    command = commands(lenient, host)["PreCompact"]
    done = run(place, command, {**payload(place, "PreCompact"), "transcript_path": str(place.home / "gone")})
    assert (done.returncode, done.stdout) == (0, b"")
    remove_hook(place)
    assert run(place, command, payload(place, "PreCompact")).returncode == 0


def test_what_claude_code_is_told_is_what_its_contract_asks_for(place: Place) -> None:
    commands(place, "claude-code")
    events = parse_json((place.home / ".claude/settings.json").read_text())["hooks"]
    assert events.keys() == {"PreCompact", "PostCompact", "SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "SessionEnd"}
    (gate,) = events["PreCompact"][0]["hooks"]
    assert (gate["type"], gate["timeout"], gate["onFailure"]) == ("command", 30, "block")
    for ((hook,),) in ([group["hooks"] for group in groups] for groups in events.values()):
        assert "async" not in hook
        assert "args" not in hook, "a Claude Code that does not know args would run a bare Python on the payload"
        assert place.python.split("'")[0] in hook["command"], "absolute paths"
    assert "onFailure" not in events["Stop"][0]["hooks"][0]


def test_codex_is_told_seconds_and_gemini_milliseconds(place: Place) -> None:
    commands(place, "codex")
    commands(place, "gemini")
    codex = tomllib.loads((place.home / ".codex/config.toml").read_text())["hooks"]
    assert codex["PreCompact"][0]["hooks"][0]["timeout"] == 30
    assert codex["SessionEnd"][0]["hooks"][0]["timeout"] == 3, "Codex clamps it there"
    gemini = parse_json((place.home / ".gemini/settings.json").read_text())["hooks"]
    assert gemini["PreCompress"][0]["hooks"][0]["timeout"] == 30_000
    assert "PreCompact" not in gemini


def test_commands_are_the_same_each_time(place: Place) -> None:
    """Codex trusts a command by its text: another one would have to be trusted anew."""
    first = commands(place, "codex")
    apply_plan(find_host("codex").plan_uninstall(place), place.memoryd_home)
    assert commands(place, "codex") == first
