"""Hooks in a settings file of JSON, as Claude Code and Gemini CLI have it: ``hooks`` holds a list of groups for each event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryd.errors import ConfigError
from memoryd.hosts import Change, Place, append_json, backups_of, drop_json, parse_json
from memoryd_hooks._install import is_ours, read_text

__all__ = ["has_ours", "plan_drop", "plan_put"]

Groups = Mapping[str, Mapping[str, Any]]


def has_ours(path: Path) -> bool:
    """Whether a hook of memoryd is in the settings file."""
    return bool(_ours(_parsed(path, read_text(path))))


def plan_put(path: Path, groups: Groups, why: str) -> tuple[Change, ...]:
    """``groups`` (one for each event) in the settings file, instead of earlier ones of memoryd; nothing where they are there."""
    before = read_text(path)
    after = _named(path, lambda: _put(before, groups))
    return (Change(path, after.encode(), why),) if after != before else ()


def plan_drop(path: Path, place: Place, groups: Groups, why: str) -> tuple[Change, ...]:
    """The settings file as it was before.  One that an install made, and that holds nothing else now, goes."""
    before = read_text(path)
    if not _ours(_parsed(path, before)):
        return ()
    earlier = [copy.decode("utf-8", "replace") for copy in backups_of(path, place.memoryd_home)]
    for text in earlier:  # to the byte, also where taking out leaves a space or an empty list
        if _put(text, groups) == before:
            return (Change(path, text.encode(), why),)
    after = _drop(before)
    if not earlier and not after.strip().strip("{}").strip():
        return (Change(path, None, why),)
    return (Change(path, after.encode(), why),)


def _named(path: Path, edit: Callable[[], str]) -> str:
    try:
        return edit()
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _parsed(path: Path, text: str) -> Any:
    try:
        return parse_json(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _put(text: str, groups: Groups) -> str:
    settings = parse_json(text)
    if not isinstance(settings, dict):
        raise ConfigError("expected an object")
    found = _ours(settings)
    if {event: group for event, _, _, group in found} == groups and len(found) == len(groups):
        return text
    text = _drop(text)
    for event, group in groups.items():
        text = append_json(text, ("hooks", event), group)
    return text


def _drop(text: str) -> str:
    """Each hook of ours goes, and what then holds nothing: its group, the event's list, the object of events."""
    for event, group, hook, _ in reversed(_ours(parse_json(text))):
        text = drop_json(text, ("hooks", event, group, "hooks", hook))
        if not parse_json(text)["hooks"][event][group]["hooks"]:
            text = drop_json(text, ("hooks", event, group))
        if not parse_json(text)["hooks"][event]:
            text = drop_json(text, ("hooks", event))
    return text if parse_json(text).get("hooks", True) else drop_json(text, ("hooks",))


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
