"""What doctor says of coding agents: each thing that can be wrong, with its remedy, and never more than is true."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from memoryd.hosts import Check, Place, apply_plan, find_host, make_place
from tests.adapters.hooks.conftest import Memoryd
from tests.daemon.harness import Daemon

Stub = Callable[..., Path]


@pytest.fixture
def place(room: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("HOME", str(room / "user"))
    monkeypatch.setenv("PATH", f"{room / 'bin'}:/usr/bin:/bin")
    return make_place()


@pytest.fixture
def stub(room: Path) -> Stub:
    """A program of a host's name that says a version; no agent is run."""

    def write(name: str, says: str, code: int = 0) -> Path:
        (room / "bin").mkdir(exist_ok=True)
        path = room / "bin" / name
        path.write_text(f'#!/bin/sh\necho "$@" >> "$0.calls"\necho "{says}"\nexit {code}\n')
        path.chmod(0o755)
        return path

    return write


def install(place: Place, host: str) -> None:
    apply_plan(find_host(host).plan_install(place), place.memoryd_home)


def checks(place: Place, host: str) -> dict[str, Check]:
    found = find_host(host).checks(place)
    for check in found:
        assert check.said
        assert (check.state in ("ok", "skip")) == (check.remedy == ""), check
    return {check.name: check for check in found}


def test_nothing_is_installed(place: Place) -> None:
    found = checks(place, "claude-code")
    assert (found["hooks"].state, found["hooks"].remedy) == ("fail", "memoryd install claude-code")
    assert found["gate"].state == "fail"
    assert found["version"].state == "skip"
    assert checks(place, "codex")["hooks"].state == "fail"
    assert checks(place, "gemini")["hooks"].state == "fail"


@pytest.mark.parametrize(
    ("host", "file"), [("claude-code", ".claude/settings.json"), ("codex", ".codex/config.toml"), ("gemini", ".gemini/settings.json")]
)
def test_settings_that_nobody_can_read_are_named(place: Place, host: str, file: str) -> None:
    path = place.home / file
    path.parent.mkdir(parents=True)
    path.write_text("{} x")
    found = checks(place, host)["settings"]
    assert found.state == "fail"
    assert found.said.count(str(path)) == 1
    path.write_text("")
    assert "settings" not in checks(place, host)


@pytest.mark.parametrize(
    ("says", "state", "words"),
    [
        ("2.1.332 (Claude Code)", "ok", "a gate that crashes refuses too"),
        ("2.1.295 (Claude Code)", "ok", "gated"),
        ("2.1.294 (Claude Code)", "warn", "this version ignores onFailure"),
        ("2.1.105 (Claude Code)", "warn", "this version ignores onFailure"),
        ("2.1.104 (Claude Code)", "fail", "advisory"),
        ("1.0.48", "fail", "advisory"),
        ("hello", "warn", "is not known"),
    ],
)
def test_the_gate_is_as_good_as_the_version(place: Place, stub: Stub, says: str, state: str, words: str) -> None:
    install(place, "claude-code")
    program = stub("claude", says)
    found = checks(place, "claude-code")
    assert (found["gate"].state, words in found["gate"].said) == (state, True), found["gate"]
    assert found["hooks"].state == found["program"].state == found["switched-on"].state == "ok"
    assert Path(f"{program}.calls").read_text() == "--version\n", "nothing else is asked"


def test_a_host_that_fails_or_hangs_is_said(place: Place, stub: Stub) -> None:
    install(place, "claude-code")
    stub("claude", "2.1.332", code=3)
    assert "exit code 3" in checks(place, "claude-code")["version"].said
    assert checks(place, "claude-code")["gate"].state == "warn"


def test_what_the_commands_name_is_gone(place: Place) -> None:
    install(place, "codex")
    (place.memoryd_home / "bin/memoryd_hook.py").unlink()
    found = checks(place, "codex")["program"]
    assert (found.state, found.remedy) == ("fail", "memoryd install codex")
    assert str(place.memoryd_home / "bin/memoryd_hook.py") in found.said


def test_the_hook_program_is_of_another_version(place: Place) -> None:
    install(place, "codex")
    (place.memoryd_home / "bin/memoryd_hook.py").write_text("# of last year")
    found = checks(place, "codex")["program"]
    assert (found.state, found.remedy) == ("warn", "memoryd install codex")
    plan = find_host("codex").plan_install(place)
    assert [change.path.name for change in plan.changes] == ["memoryd_hook.py"], "settings stay, and with them Codex's trust"
    assert plan.notes == ()


def test_hooks_are_switched_off(place: Place) -> None:
    install(place, "claude-code")
    path = place.home / ".claude/settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "disableAllHooks": True}))
    assert "nothing is gated" in checks(place, "claude-code")["switched-on"].said
    install(place, "codex")
    settings = place.home / ".codex/config.toml"
    settings.write_text("[features]\nhooks = false\n" + settings.read_text())
    assert checks(place, "codex")["switched-on"].state == "fail"


def test_a_hook_is_missing_or_weakened(place: Place, stub: Stub) -> None:
    install(place, "claude-code")
    stub("claude", "2.1.332")
    path = place.home / ".claude/settings.json"
    settings = json.loads(path.read_text())
    del settings["hooks"]["Stop"], settings["hooks"]["PreCompact"][0]["hooks"][0]["onFailure"]
    path.write_text(json.dumps(settings))
    found = checks(place, "claude-code")
    assert "no hook of memoryd for Stop" in found["hooks"].said
    assert "nothing is gated" in found["gate"].said
    install(place, "claude-code")
    assert checks(place, "claude-code")["gate"].state == "ok"


def test_codex_is_trusted_once_it_has_asked(place: Place, room: Path, memoryd: Memoryd) -> None:
    install(place, "codex")
    assert (checks(place, "codex")["trusted"].state, "/hooks" in checks(place, "codex")["trusted"].remedy) == ("warn", True)
    payload = json.dumps({"session_id": "s", "transcript_path": None, "cwd": "/", "trigger": "manual"}).encode()
    memoryd("_gate", "codex", "PreCompact", stdin=payload)
    assert checks(place, "codex")["trusted"].state == "ok"
    later = time.time() + 60
    os.utime(place.home / ".codex/config.toml", (later, later))
    assert checks(place, "codex")["trusted"].state == "warn", "a change of the settings may have taken the trust away"


def test_an_observer_is_called_one(place: Place) -> None:
    install(place, "gemini")
    assert "advisory" in checks(place, "gemini")["gate"].said
    assert find_host("gemini").info.capability == "observe-only"
    assert "advisory" in find_host("gemini").info.says
    assert "gated" not in find_host("gemini").info.says + find_host("mcp").info.says


def test_a_daemon_answers_or_not(place: Place, room: Path) -> None:
    assert checks(place, "claude-code")["daemon"].state == "warn"
    with Daemon(room):
        assert checks(place, "claude-code")["daemon"].state == "ok"
    far = attrs.evolve(place, environ={**place.environ, "MEMORYD_SOCKET": "/" + "x" * 200})
    assert checks(far, "claude-code")["daemon"].state == "fail"


def test_transcripts_that_the_host_will_delete(place: Place, memoryd: Memoryd) -> None:
    install(place, "claude-code")
    folder = place.home / ".claude/projects/-w-foo"
    folder.mkdir(parents=True)
    path = folder / "s-1.jsonl"
    user = {"type": "user", "uuid": "u-1", "sessionId": "s-1", "cwd": "/w/foo", "timestamp": "2026-10-29T10:00:00.000Z"}
    said = {"role": "assistant", "id": "m-1", "content": [{"type": "text", "text": "The sleep is the cause."}]}
    lines = [
        {**user, "message": {"role": "user", "content": "Fix the flaky test"}},
        {**user, "type": "assistant", "uuid": "u-2", "message": said},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert checks(place, "claude-code")["purge"].state == "ok", "it is new"
    _age(path, 25)
    found = checks(place, "claude-code")["purge"]
    assert found.state == "warn"
    assert found.remedy == f"memoryd import claude {folder.parent}"
    memoryd("import", "claude", str(folder.parent))
    assert checks(place, "claude-code")["purge"].state == "ok", "all of it is recorded"
    path.write_text(path.read_text() + json.dumps({**user, "uuid": "u-3", "message": {"role": "user", "content": "One more"}}) + "\n")
    _age(path, 25)
    assert checks(place, "claude-code")["purge"].state == "warn"
    settings = place.home / ".claude/settings.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "cleanupPeriodDays": 400}))
    assert checks(place, "claude-code")["purge"].state == "ok"


def _age(path: Path, days: int) -> None:
    then = time.time() - days * 86_400
    os.utime(path, (then, then))
