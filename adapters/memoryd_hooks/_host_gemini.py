"""Gemini CLI as a host: it tells, and takes no refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoryd.hosts import Check, HostInfo, Place, Plan, in_file
from memoryd_hooks import _checks as checks
from memoryd_hooks import _install as install
from memoryd_hooks._install import Hook
from memoryd_hooks._install_json import has_hooks, plan_hooks, plan_no_hooks

__all__ = ["GeminiHost"]

HOOKS = (Hook("PreCompress", 30), Hook("SessionStart", 10), Hook("BeforeAgent", 5), Hook("AfterAgent", 10), Hook("SessionEnd", 5))


class GeminiHost:
    info = HostInfo(
        "gemini",
        "Gemini CLI",
        "observe-only",
        "advisory: Gemini CLI compresses whatever a hook answers; a checkpoint is made each time it tells of it, and nothing is promised",
    )

    def present(self, place: Place) -> bool:
        return (place.home / ".gemini").is_dir() or install.program(place, "gemini") is not None

    def installed(self, place: Place) -> bool:
        return in_file(_settings(place), has_hooks)

    def plan_install(self, place: Place) -> Plan:
        install.scope_of(place, "user", "project")
        changes = (*install.hook_change(place), *plan_hooks(_settings(place), _groups(place)))
        return Plan(changes, () if self.installed(place) else install.notes_of(place, self.info.label))

    def plan_uninstall(self, place: Place) -> Plan:
        install.scope_of(place, "user", "project")
        changes = plan_no_hooks(_settings(place), _groups(place), place.memoryd_home)
        return install.after_uninstall(place, changes)

    def checks(self, place: Place) -> Sequence[Check]:
        return checks.of_gemini(place, _settings(place), {hook.event for hook in HOOKS})


def _settings(place: Place) -> Path:
    folder = place.cwd if place.options.get("scope") == "project" else place.home
    return folder / ".gemini" / "settings.json"


def _groups(place: Place) -> Mapping[str, Any]:
    return {hook.event: {"hooks": [_handler(place, hook)]} for hook in HOOKS}


def _handler(place: Place, hook: Hook) -> Mapping[str, Any]:
    """Milliseconds here, where other hosts have seconds."""
    command = install.hook_command(place, "gemini", hook.event)
    return {"name": "memoryd", "type": "command", "command": command, "timeout": hook.timeout * 1000}
