"""The table ``[backends.honcho]`` and the ``HONCHO_*`` variables.  A value in the table wins; nothing has a place by default."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs

from memoryd.errors import ConfigError

__all__ = ["Settings", "read_settings"]

_WHERE = "backends.honcho"
_ID = re.compile(r"[A-Za-z0-9_-]{1,512}\Z")
_KEYS = (
    "url", "api_key", "api_key_env", "api_key_file", "workspace", "timeout", "read_timeout", "settle", "assistant", "peers", "send_tools",
)  # fmt: skip


@attrs.frozen(slots=True)
class Settings:
    """``url`` is empty where none was given.  ``timeout`` and ``read_timeout`` are seconds for a call that writes or reads; ``settle`` is
    how long a write whose answer was lost may still arrive; ``peers`` gives users a peer id of the operator's choice."""

    url: str = ""
    api_key: str | None = attrs.field(default=None, repr=False)
    workspace: str = "memoryd"
    timeout: float = 20.0
    read_timeout: float = 5.0
    settle: float = 15.0
    assistant: str = "memoryd-assistant"
    peers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    send_tools: bool = False


def read_settings(table: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """The settings of one runtime.  Raises :class:`ConfigError`, one line that names the setting and never shows a key."""
    for name in table:
        if name not in _KEYS:
            raise ConfigError(f"{_WHERE}.{name}: unknown key; {_nearest(name)}")
    defaults = Settings()
    assistant = _id("assistant", table.get("assistant", defaults.assistant))
    return Settings(
        url=_url(table, environ),
        api_key=_api_key(table, environ),
        workspace=_workspace(table, environ) or defaults.workspace,
        timeout=_seconds(table, "timeout", defaults.timeout),
        read_timeout=_seconds(table, "read_timeout", defaults.read_timeout),
        settle=_seconds(table, "settle", defaults.settle),
        assistant=assistant,
        peers=_peers(table.get("peers", {}), assistant),
        send_tools=_flag(table, "send_tools"),
    )


def _nearest(name: str) -> str:
    near = get_close_matches(name, _KEYS, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(_KEYS)}"


def _from(table: Mapping[str, Any], environ: Mapping[str, str], key: str, *variables: str) -> tuple[str, str]:
    """``(place, value)`` of a text: the table's, else the first variable that is set; an empty value where there is none."""
    if key in table:
        return f"{_WHERE}.{key}", _text(key, table[key])
    name = next((name for name in variables if environ.get(name, "").strip()), "")
    return name, environ[name].strip() if name else ""


def _url(table: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    if table.get("url") == "":  # a host says that this profile has none, whatever the process's environment holds
        return ""
    place, url = _from(table, environ, "url", "HONCHO_URL", "HONCHO_BASE_URL")
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ConfigError(f"{place}: expected an address such as https://honcho.example.com; this is not one") from None
    if not usable:
        raise ConfigError(f"{place}: expected an address that begins with http:// or https://, such as https://honcho.example.com")
    if parts.username or parts.password:
        raise ConfigError(f"{place}: a secret does not belong into the address; set HONCHO_API_KEY")
    if parts.query or parts.fragment:
        raise ConfigError(f"{place}: expected an address without ? and #")
    if re.search(r"/v\d+/?$", parts.path):
        raise ConfigError(f"{place}: expected the address without {parts.path.rstrip('/').rpartition('/')[2]}, which is added to it")
    return url.rstrip("/")


def _api_key(table: Mapping[str, Any], environ: Mapping[str, str]) -> str | None:
    if "api_key" in table:  # from a host, in this process: files and variables are refused before they come here
        return _printable(f"{_WHERE}.api_key", str(table["api_key"])) or None
    if "api_key_env" in table and "api_key_file" in table:
        raise ConfigError(f"{_WHERE}: give api_key_env or api_key_file, not both")
    if "api_key_file" in table:
        return _key_in(Path(_text("api_key_file", table["api_key_file"])).expanduser())
    name = _text("api_key_env", table.get("api_key_env", "HONCHO_API_KEY"))
    key = environ.get(name, "").strip()
    if "api_key_env" in table and not key:
        raise ConfigError(f"{_WHERE}.api_key_env: the variable {name} is not set")
    return _printable(name, key) or None


def _key_in(path: Path) -> str:
    try:
        key = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not text"
        raise ConfigError(f"{_WHERE}.api_key_file: {path}: {reason}") from None
    if not key:
        raise ConfigError(f"{_WHERE}.api_key_file: {path}: is empty")
    return _printable(f"{_WHERE}.api_key_file", key)


def _printable(place: str, key: str) -> str:
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"{place}: a key is one line of ASCII text; this is not")
    return key


def _workspace(table: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    place, name = _from(table, environ, "workspace", "HONCHO_WORKSPACE_ID", "HONCHO_APP_ID")
    return _id(place, name) if name else ""


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{_WHERE}.{key}: expected a text")
    return value.strip()


def _id(place: str, value: object) -> str:
    if not isinstance(value, str) or not _ID.match(value):
        where = place if "." in place or place.startswith("HONCHO_") else f"{_WHERE}.{place}"
        raise ConfigError(f"{where}: expected 1 to 512 letters, digits, - or _")
    return value


def _seconds(table: Mapping[str, Any], key: str, default: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 3600:
        raise ConfigError(f"{_WHERE}.{key}: expected seconds, more than 0 and at most 3600")
    return float(value)


def _flag(table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise ConfigError(f"{_WHERE}.{key}: expected true or false")
    return value


def _peers(table: object, assistant: str) -> dict[str, str]:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{_WHERE}.peers: expected a table of users and their peer ids")
    peers = {str(user): _id(f"{_WHERE}.peers.{user}", peer) for user, peer in table.items()}
    if len({*peers.values(), assistant}) <= len(peers):
        raise ConfigError(f"{_WHERE}.peers: each user needs a peer of its own, and none may be the assistant's")
    return peers
