"""Codex as a host."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoryd.hosts import Change, Check, HostInfo, Place, Plan, in_file, plan_drop, plan_put
from memoryd_hooks import _checks as checks
from memoryd_hooks import _install as install
from memoryd_hooks._install import Hook
from memoryd_hooks._install_toml import drop_tables, has_tables, put_tables

__all__ = ["CodexHost"]

_HOST = "codex"
HOOKS = (
    Hook("PreCompact", 30, gate=True), Hook("PostCompact", 30), Hook("SessionStart", 10), Hook("UserPromptSubmit", 5),
    Hook("Stop", 10), Hook("SessionEnd", 3),
)  # fmt: skip
TRUST = "Codex runs no hook before it is trusted, and says nothing: open Codex, type /hooks, and trust those of memoryd"


class CodexHost:
    info = HostInfo(
        "codex",
        "Codex",
        "hard-veto",
        "gated once its hooks are trusted (/hooks in Codex): a compaction whose transcript cannot be archived ends the turn; a hook that "
        "cannot start does not stop it",
        "0.171.0",
    )

    def present(self, place: Place) -> bool:
        return _folder(place).is_dir() or install.program(place, "codex") is not None

    def installed(self, place: Place) -> bool:
        return in_file(_settings(place), has_tables)

    def plan_install(self, place: Place) -> Plan:
        install.scope_of(place, "user")
        settings = _put(place)
        notes = () if self.installed(place) else install.notes_of(place, self.info.label)
        return Plan((*install.hook_change(place), *settings), (*notes, TRUST) if settings else notes)

    def plan_uninstall(self, place: Place) -> Plan:
        install.scope_of(place, "user")
        return install.after_uninstall(place, _drop(place))

    def checks(self, place: Place) -> Sequence[Check]:
        return checks.of_codex(place, _settings(place), {hook.event for hook in HOOKS})


def _folder(place: Place) -> Path:
    given = place.environ.get("CODEX_HOME")
    return Path(given) if given else place.home / ".codex"


def _settings(place: Place) -> Path:
    return _folder(place) / "config.toml"


def _put(place: Place) -> tuple[Change, ...]:
    groups = _hooks(place)
    return plan_put(_settings(place), lambda text: put_tables(text, groups), install.PUT_WHY)


def _drop(place: Place) -> tuple[Change, ...]:
    groups = _hooks(place)
    return plan_drop(_settings(place), place.memoryd_home, lambda text: put_tables(text, groups), drop_tables, install.DROP_WHY)


def _hooks(place: Place) -> Mapping[str, Any]:
    return {hook.event: {"type": "command", "command": _command(place, hook), "timeout": hook.timeout} for hook in HOOKS}


def _command(place: Place, hook: Hook) -> str:
    if not hook.gate:
        return install.hook_command(place, _HOST, hook.event)
    if not install.wants_gate(place):
        return install.lenient_command(place, _HOST, hook.event)
    said = install.lost_gate_json(place, hook.event, _settings(place))
    return install.gate_command(place, _HOST, hook.event, f"printf '%s' {shlex.quote(said)}", (0,))
