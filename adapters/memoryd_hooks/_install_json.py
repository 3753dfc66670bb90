"""Hooks in a settings file of JSON, as Claude Code and Gemini CLI have it: ``hooks`` holds a list of groups for each event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryd.errors import ConfigError
from memoryd.hosts import Change, append_json, drop_json, parse_json, plan_drop, plan_put
from memoryd_hooks._install import DROP_WHY, PUT_WHY, is_ours

__all__ = ["drop_hooks", "has_hooks", "plan_hooks", "plan_no_hooks", "put_hooks"]


def has_hooks(text: str) -> bool:
    """Whether a hook of memoryd is in the settings."""
    return bool(_ours(parse_json(text)))


def plan_hooks(path: Path, groups: Mapping[str, Mapping[str, Any]]) -> tuple[Change, ...]:
    """The change that puts ``groups`` into the settings at ``path``."""
    return plan_put(path, lambda text: put_hooks(text, groups), PUT_WHY)


def plan_no_hooks(path: Path, groups: Mapping[str, Mapping[str, Any]], memoryd_home: Path) -> tuple[Change, ...]:
    """The change that takes them out again."""
    return plan_drop(path, memoryd_home, lambda text: put_hooks(text, groups), drop_hooks, DROP_WHY)


def put_hooks(text: str, groups: Mapping[str, Mapping[str, Any]]) -> str:
    """The settings with ``groups``, one for each event, instead of earlier hooks of memoryd."""
    settings = parse_json(text)
    if not isinstance(settings, dict):
        raise ConfigError("expected an object")
    found = _ours(settings)
    if {event: group for event, _, _, group in found} == groups and len(found) == len(groups):
        return text
    text = drop_hooks(text)
    for event, group in groups.items():
        text = append_json(text, ("hooks", event), group)
    return text


def drop_hooks(text: str) -> str:
    """Each hook of ours goes, and what then holds nothing: its group, the event's list, the object of events."""
    found = _ours(parse_json(text))
    for event, group, hook, _ in reversed(found):
        text = drop_json(text, ("hooks", event, group, "hooks", hook))
        if not parse_json(text)["hooks"][event][group]["hooks"]:
            text = drop_json(text, ("hooks", event, group))
        if not parse_json(text)["hooks"][event]:
            text = drop_json(text, ("hooks", event))
    return drop_json(text, ("hooks",)) if found and not parse_json(text)["hooks"] else text


def _ours(settings: Any) -> list[tuple[str, int, int, Any]]:
    """Every hook of ours: its event, the group's place, its place in the group, the group."""
    return list(_found(settings))


def _found(settings: Any) -> Iterator[tuple[str, int, int, Any]]:
    events = settings.get("hooks") if isinstance(settings, dict) else None
    for event, groups in events.items() if isinstance(events, dict) else ():
        for place, group in enumerate(groups if isinstance(groups, list) else ()):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for index, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                if isinstance(hook, dict) and is_ours(hook.get("command")):
                    yield event, place, index, group
