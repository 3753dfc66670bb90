"""Claude Code as a host: where its settings are, which events it is asked to tell, what to say of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoryd.hosts import Change, Check, HostInfo, Place, Plan, in_file
from memoryd_hooks import _checks as checks
from memoryd_hooks import _install as install
from memoryd_hooks._install import Hook
from memoryd_hooks._install_json import has_hooks, plan_hooks, plan_no_hooks

__all__ = ["ClaudeHost"]

_HOST = "claude"
_GATE = "PreCompact"
HOOKS = (
    Hook(_GATE, 30, gate=True), Hook("PostCompact", 30), Hook("SessionStart", 10), Hook("UserPromptSubmit", 5),
    Hook("Stop", 10), Hook("SubagentStop", 10), Hook("SessionEnd", 5),
)  # fmt: skip


class ClaudeHost:
    """``--scope user`` is the user's settings.json, ``project`` the settings of this project that are not shared, ``plugin`` the hook
    program alone, for the plugin that brings its own settings."""

    info = HostInfo(
        "claude-code",
        "Claude Code",
        "hard-veto",
        "gated: a compaction whose transcript cannot be archived is refused (Claude Code 2.1.105 and later; a gate that crashes "
        "refuses from 2.1.295 on)",
        "2.1.105",
    )

    def present(self, place: Place) -> bool:
        return _folder(place).is_dir() or install.program(place, "claude") is not None

    def installed(self, place: Place) -> bool:
        return any(in_file(path, has_hooks) for path in (_folder(place) / "settings.json", _project(place)))

    def plan_install(self, place: Place) -> Plan:
        changes = install.hook_change(place)
        if install.scope_of(place, "user", "project", "plugin") == "plugin":
            changes += install.launcher_change(place)
        else:
            changes += plan_hooks(_settings(place), _groups(place))
        notes = (*install.notes_of(place, self.info.label), "sessions that are open take the hooks in by themselves")
        return Plan(changes, () if not changes or self.installed(place) else notes)

    def plan_uninstall(self, place: Place) -> Plan:
        changes: tuple[Change, ...] = install.launcher_drop(place)
        if install.scope_of(place, "user", "project", "plugin") != "plugin":
            changes = plan_no_hooks(_settings(place), _groups(place), place.memoryd_home)
        return install.after_uninstall(place, changes)

    def checks(self, place: Place) -> Sequence[Check]:
        files = (_folder(place) / "settings.json", _project(place))
        return checks.of_claude(place, _folder(place), {hook.event for hook in HOOKS}, files)


def _folder(place: Place) -> Path:
    given = place.environ.get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else place.home / ".claude"


def _project(place: Place) -> Path:
    """Not the project's settings.json: that is shared, and names of this machine's files are nobody else's."""
    return place.cwd / ".claude" / "settings.local.json"


def _settings(place: Place) -> Path:
    return _project(place) if place.options.get("scope") == "project" else _folder(place) / "settings.json"


def _groups(place: Place) -> Mapping[str, Any]:
    return {hook.event: {"hooks": [_handler(place, hook)]} for hook in HOOKS}


def _handler(place: Place, hook: Hook) -> Mapping[str, Any]:
    if not hook.gate:
        return {"type": "command", "command": install.hook_command(place, _HOST, hook.event), "timeout": hook.timeout}
    if not install.wants_gate(place):
        return {"type": "command", "command": install.lenient_command(place, _HOST, hook.event), "timeout": hook.timeout}
    said = install.lost_gate(place, hook.event, _settings(place))
    command = install.gate_command(place, _HOST, hook.event, f"printf '%s\\n' {shlex.quote(said)} >&2; exit 2", (0, 2))
    return {
        "type": "command", "command": command, "timeout": hook.timeout, "onFailure": "block",
        "statusMessage": "memoryd: checkpoint",
    }  # fmt: skip
