"""The plugin folder holds to Claude Code's layout, and its commands work after an install for it, before one, and after an uninstall."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from memoryd import __version__
from memoryd.hosts import Place, apply_plan, find_host, make_place

PLUGIN = Path(__file__).parents[3] / "config/claude"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    home = tmp_path / "it's $HOME"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MEMORYD_HOME", str(home / "memory"))
    home.mkdir()
    return make_place(options={"scope": "plugin"})


def commands() -> dict[str, str]:
    events = json.loads((PLUGIN / "hooks/hooks.json").read_text())["hooks"]
    return {event: group["hooks"][0]["command"] for event, (group,) in events.items()}


def run(command: str, shell: str = "sh", **environ: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "CLAUDE_PLUGIN_ROOT": str(PLUGIN), **environ}
    payload = b'{"session_id": "s-1", "transcript_path": null, "cwd": "/", "trigger": "auto"}'
    return subprocess.run([shell, "-c", command], input=payload, capture_output=True, env=env, timeout=60, check=False)


def test_the_layout() -> None:
    manifest = json.loads((PLUGIN / ".claude-plugin/plugin.json").read_text())
    assert manifest["name"] == "memoryd"
    assert manifest["version"] == __version__
    assert manifest.keys() == {"name", "version", "description", "author", "license", "hooks", "mcpServers"}
    for name in ("hooks", "mcpServers"):
        assert manifest[name].startswith("./")
        assert (PLUGIN / manifest[name]).is_file()
    (server,) = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"].items()
    assert server == ("memoryd", {"type": "stdio", "command": "memoryd", "args": ["mcp"]})
    assert (PLUGIN / "README.md").is_file(), "the directory of plugins asks for one"
    head = (PLUGIN / "skills/memory/SKILL.md").read_text().split("---")[1]
    assert head.startswith("\nname: memory\ndescription: ")


def test_its_hooks_are_those_of_the_settings(place: Place) -> None:
    """The same events, timeouts and demands as the settings that an install writes."""
    user = Place(home=place.home, memoryd_home=place.memoryd_home, python=place.python, cwd=place.cwd, environ=place.environ)
    apply_plan(find_host("claude-code").plan_install(user), place.memoryd_home)
    installed = json.loads((place.home / ".claude/settings.json").read_text())["hooks"]
    shipped = json.loads((PLUGIN / "hooks/hooks.json").read_text())["hooks"]
    assert _without_commands(shipped) == _without_commands(installed)


def _without_commands(events: dict[str, list[dict[str, list[dict[str, object]]]]]) -> object:
    return {event: [{key: value for key, value in group["hooks"][0].items() if key != "command"} for group in groups] for event, groups in events.items()}


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_after_an_install_for_it_every_command_runs(place: Place, shell: str) -> None:
    plan = find_host("claude-code").plan_install(place)
    assert [change.path.name for change in plan.changes] == ["memoryd_hook.py", "memoryd-hook"]
    apply_plan(plan, place.memoryd_home)
    assert find_host("claude-code").plan_install(place).changes == ()
    assert not (place.home / ".claude").exists(), "settings are the plugin's own"
    for event, command in commands().items():
        done = run(command, shell)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), event


def test_before_an_install_and_after_an_uninstall(place: Place) -> None:
    _only_the_gate_refuses(b"memoryd install claude-code --scope plugin")
    apply_plan(find_host("claude-code").plan_install(place), place.memoryd_home)
    (place.memoryd_home / "bin/memoryd_hook.py").unlink()
    _only_the_gate_refuses(b"the plugin memoryd")
    apply_plan(find_host("claude-code").plan_uninstall(place), place.memoryd_home)
    assert not (place.memoryd_home / "bin/memoryd-hook").exists()
    _only_the_gate_refuses(b"claude plugin disable memoryd")


def _only_the_gate_refuses(said: bytes) -> None:
    for event, command in commands().items():
        done = run(command)
        if event == "PreCompact":
            assert (done.returncode, done.stdout) == (2, b"")
            assert said in done.stderr
            assert run(command, MEMORYD_GATE="off").returncode == 0
        else:
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), event
