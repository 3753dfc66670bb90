"""MCP clients as a host: one entry in the file where each of them lists its servers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memoryd.errors import ConfigError
from memoryd.hosts import (
    Change,
    Check,
    HostInfo,
    Place,
    Plan,
    drop_json,
    in_file,
    parse_json,
    plan_drop,
    plan_put,
    put_json,
)

__all__ = ["host"]

_NAME = "memoryd"
_SERVERS = "mcpServers"
# clients with a file of their own in the user's home; those that rewrite theirs all the time have a command for it instead
_FILES = (("Cursor", ".cursor", "mcp.json"), ("Gemini CLI", ".gemini", "settings.json"))
_NOTHING_KEPT = "an MCP client gives no signal before it compacts its context: only what is added through the tools is kept"

_NO_PACKAGE, _GET_PACKAGE = "the package mcp is not installed", "pip install 'memoryd[mcp]'"
_ENTER = "memoryd install mcp; a client that keeps its list itself, such as Claude Code, is not looked into"


class McpHost:
    """``--scope user`` is every client found in the home, ``project`` the .mcp.json of the working directory."""

    info = HostInfo(
        "mcp", "any MCP client", "observe-only",
        "no signal before a compaction from an MCP client: memory is there as tools and resources, and what is added is kept"
    )

    def present(self, place: Place) -> bool:
        return bool(_files(place))

    def installed(self, place: Place) -> bool:
        return any(in_file(path, _has) for path in (*_files(place), place.cwd / ".mcp.json"))

    def plan_install(self, place: Place) -> Plan:
        entry = _entry(place)
        changes = [change for path in _chosen(place) for change in plan_put(path, lambda text: _put(text, entry), "the server memoryd")]
        notes = () if find_spec("mcp") is not None else (f"the server cannot start yet: {_NO_PACKAGE}: {_GET_PACKAGE}",)
        return Plan(tuple(changes), (*_missed(place), *notes, _NOTHING_KEPT, *_by_hand(place)))

    def plan_uninstall(self, place: Place) -> Plan:
        changes: list[Change] = []
        for path in _chosen(place):
            changes += plan_drop(path, place.memoryd_home, lambda text: _put(text, _entry(place)), _drop, "without the server memoryd")
        return Plan(tuple(changes))

    def checks(self, place: Place) -> Sequence[Check]:
        there = [path for path in (*_files(place), place.cwd / ".mcp.json") if in_file(path, _has)]
        said = f"in {', '.join(map(str, there))}" if there else "no file of an MCP client names memoryd"
        return (
            Check("extra", "ok", "the package mcp is installed")
            if find_spec("mcp") is not None
            else Check("extra", "fail", _NO_PACKAGE, _GET_PACKAGE),
            Check("server", "ok" if there else "warn", said, "" if there else _ENTER),
            Check("gate", "skip", _NOTHING_KEPT),
        )


host = McpHost()


def _files(place: Place) -> list[Path]:
    """The files of the clients that are on this machine, whether they exist already or not."""
    return [place.home / folder / name for _, folder, name in _FILES if (place.home / folder).is_dir()]


def _chosen(place: Place) -> list[Path]:
    scope = place.options.get("scope", "user")
    if scope not in ("user", "project"):
        raise ConfigError(f'--scope: "{scope}" is unknown here; there are: user, project')
    return [place.cwd / ".mcp.json"] if scope == "project" else _files(place)


def _missed(place: Place) -> Sequence[str]:
    """What was looked for, where nothing of it is there."""
    if _chosen(place):
        return ()
    places = ", ".join(f"{label} ({place.home / folder})" for label, folder, _ in _FILES)
    return (f"no client was found to enter it in; looked for: {places}",)


def _entry(place: Place) -> Mapping[str, Any]:
    return {"command": place.python, "args": ["-I", "-m", "memoryd", "--home", os.fspath(place.memoryd_home), "mcp"]}


def _by_hand(place: Place) -> Sequence[str]:
    """What to type for clients that write their own file."""
    words = shlex.join([place.python, *_entry(place)["args"]])
    return (
        f"Claude Code: claude mcp add --scope user {_NAME} -- {words}",
        f"Codex: codex mcp add {_NAME} -- {words}",
        f"another client: command and arguments are {words}",
    )


def _has(text: str) -> bool:
    settings = parse_json(text)
    servers = settings.get(_SERVERS) if isinstance(settings, dict) else None
    return isinstance(servers, dict) and _NAME in servers


def _put(text: str, entry: Mapping[str, Any]) -> str:
    return put_json(text, (_SERVERS, _NAME), entry)


def _drop(text: str) -> str:
    if not _has(text):
        return text
    text = drop_json(text, (_SERVERS, _NAME))
    return text if parse_json(text)[_SERVERS] else drop_json(text, (_SERVERS,))
