"""Hooks in Codex's config.toml: a block of our own at its end, between two comments.  What stands before it keeps every byte."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoryd.errors import ConfigError
from memoryd.hosts import Change
from memoryd_hooks._install import is_ours, read_text

__all__ = ["has_ours", "parse_toml", "plan_drop", "plan_put"]

_BEGIN = "# memoryd: from here to its end, written by 'memoryd install codex'\n"
_END = "# memoryd: end\n"

Hooks = Mapping[str, Mapping[str, Any]]  # the one hook of each event


def has_ours(path: Path) -> bool:
    """Whether a hook of memoryd is in the file."""
    return bool(_ours(_parsed(path, read_text(path))))


def plan_put(path: Path, hooks: Hooks, why: str) -> tuple[Change, ...]:
    """``hooks`` in the file, instead of earlier ones of memoryd; nothing where they are there."""
    before = read_text(path)
    if _ours(_parsed(path, before)) == dict(hooks):
        return ()
    after = _with_block(_without(path, before), hooks)
    try:
        fits = _ours(tomllib.loads(after)) == dict(hooks)
    except tomllib.TOMLDecodeError:
        fits = False
    if not fits:
        raise ConfigError(f"{path}: 'hooks' is written so that nothing can be added below it: write it as [[hooks.EVENT]] tables")
    return (Change(path, after.encode(), why),)


def plan_drop(path: Path, why: str) -> tuple[Change, ...]:
    """The file without them.  One that holds nothing else goes."""
    before = read_text(path)
    if not _ours(_parsed(path, before)):
        return ()
    after = _without(path, before)
    return (Change(path, after.encode() if after.strip() else None, why),)


def _with_block(text: str, hooks: Hooks) -> str:
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    tables = [
        f"[[hooks.{event}]]\n[[hooks.{event}.hooks]]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in hook.items())
        for event, hook in hooks.items()
    ]
    return f"{text}{gap}{_BEGIN}{'\n'.join(tables)}{_END}"


def _value(value: str | int) -> str:
    """A string as a TOML basic string: its escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _without(path: Path, text: str) -> str:
    """The text without our block, or, where somebody took it apart, without our hooks."""
    head, begun, rest = text.partition(_BEGIN)
    _, ended, tail = rest.partition(_END)
    if begun and ended:
        text = (head[:-1] if head.endswith("\n\n") or head == "\n" else head) + tail
    return _taken_out(path, text) if _ours(_parsed(path, text)) else text


def _taken_out(path: Path, text: str) -> str:
    import tomlkit  # seldom needed

    document = tomlkit.parse(text)
    events: Any = document["hooks"]
    for event in list(events):
        groups = events[event]
        for group in [group for group in groups if any(is_ours(hook.get("command")) for hook in group.get("hooks", ()))]:
            groups.remove(group)
        if not groups:
            del events[event]
    if not events:
        del document["hooks"]
    after = tomlkit.dumps(document)
    if _ours(_parsed(path, after)):
        raise ConfigError(f"{path}: the hooks of memoryd cannot be taken out: delete those whose command names memoryd_hook.py")
    return after


def parse_toml(text: str) -> Mapping[str, Any]:
    return tomllib.loads(text)


def _parsed(path: Path, text: str) -> Mapping[str, Any]:
    try:
        return parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}") from None


def _ours(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Our hook of each event; an event that has two of them answers a list, which equals nothing that is wanted."""
    found: dict[str, Any] = {}
    events = settings.get("hooks")
    for event, groups in events.items() if isinstance(events, dict) else ():
        hooks = [hook for group in _listed(groups) for hook in _listed(group.get("hooks")) if is_ours(hook.get("command"))]
        if hooks:
            found[event] = hooks[0] if len(hooks) == 1 else hooks
    return found


def _listed(value: object) -> Sequence[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
