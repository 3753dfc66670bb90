"""Hooks in Codex's config.toml: a block of our own at its end, between two comments.  What stands before it keeps every byte."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from memoryd.errors import ConfigError
from memoryd_hooks._install import is_ours

__all__ = ["drop_tables", "has_tables", "parse_toml", "put_tables"]

_BEGIN = "# memoryd: from here to its end, written by 'memoryd install codex'\n"
_END = "# memoryd: end\n"


def has_tables(text: str) -> bool:
    """Whether a hook of memoryd is in the settings."""
    return bool(_ours(parse_toml(text)))


def put_tables(text: str, hooks: Mapping[str, Mapping[str, Any]]) -> str:
    """The settings with ``hooks``, one for each event, instead of earlier ones of memoryd."""
    if _ours(parse_toml(text)) == dict(hooks):
        return text
    text = drop_tables(text)
    after = text + ("\n" if text else "") + _block(hooks)
    try:
        fits = _ours(parse_toml(after)) == dict(hooks)
    except ConfigError:
        fits = False
    if not fits:
        raise ConfigError("'hooks' is written so that nothing can be added below it: write it as [[hooks.EVENT]] tables")
    return after


def drop_tables(text: str) -> str:
    """The settings without our block, or, where somebody took it apart, without our hooks."""
    head, begun, rest = text.partition(_BEGIN)
    _, ended, tail = rest.partition(_END)
    if begun and ended:
        head = head.removesuffix("\n")
        text = head + ("\n" if tail and head and not head.endswith("\n") else "") + tail
    return _taken_out(text) if _ours(parse_toml(text)) else text


def _block(hooks: Mapping[str, Mapping[str, Any]]) -> str:
    tables = [
        f"[[hooks.{event}]]\n[[hooks.{event}.hooks]]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in hook.items())
        for event, hook in hooks.items()
    ]
    return _BEGIN + "\n".join(tables) + _END


def _value(value: str | int) -> str:
    """A string as a TOML basic string: its escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _taken_out(text: str) -> str:
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
    if _ours(parse_toml(after)):
        raise ConfigError("the hooks of memoryd cannot be taken out: delete those whose command names memoryd_hook.py")
    return after


def parse_toml(text: str) -> Mapping[str, Any]:
    """Raises :class:`ConfigError`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"is not valid TOML: {error}") from None


def _ours(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Our hook of each event; an event that has two of them gives a list, which equals nothing that is wanted."""
    found: dict[str, Any] = {}
    events = settings.get("hooks")
    for event, groups in events.items() if isinstance(events, dict) else ():
        hooks = [hook for group in _listed(groups) for hook in _listed(group.get("hooks")) if is_ours(hook.get("command"))]
        if hooks:
            found[event] = hooks[0] if len(hooks) == 1 else hooks
    return found


def _listed(value: object) -> Sequence[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
