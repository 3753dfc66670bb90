"""What a user sets for Hermes: one schema for the setup wizard, the dashboard and the provider, and one file behind it.

The file is ``<hermes_home>/memoryd/config.json``: a flat JSON object whose values may all be text, as the dashboard writes it, so that
``"false"`` is false.  Secrets are not in it: the host keeps them in the profile's ``.env``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from memoryd.errors import ConfigError

__all__ = ["FIELDS", "Field", "Kind", "Settings", "read_settings", "settings_path", "typed"]

Kind: TypeAlias = Literal["text", "select", "secret", "bool", "number"]
Setting: TypeAlias = str | bool | int

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


@attrs.frozen(slots=True)
class Field:
    """One setting.  ``options`` are what a select offers (an ``open`` one takes other names too), ``least`` and ``most`` bound a number,
    ``env_key`` names a secret's variable; ``prompted`` fields are asked for by the setup, where ``when`` (other fields' values) holds."""

    key: str
    label: str
    kind: Kind
    default: Setting
    doc: str
    options: tuple[str, ...] = ()
    open: bool = False
    least: int = 0
    most: int = 0
    env_key: str = ""
    prompted: bool = False
    when: Mapping[str, str] = attrs.field(factory=dict)


_HONCHO = {"backend": "honcho"}

FIELDS = (
    Field(
        "backend", "Backend", "select", "local",
        "where memory is kept and recalled first; local is always behind it; null turns capture off",
        options=("local", "honcho", "auto", "null"), open=True, prompted=True,
    ),
    Field(
        "honcho_url", "Honcho address", "text", "",
        "address of the Honcho server, such as https://honcho.example.com", prompted=True, when=_HONCHO,
    ),
    Field(
        "honcho_api_key", "Honcho API key", "secret", "",
        "key of the Honcho server; kept in the profile's .env", env_key="HONCHO_API_KEY", prompted=True, when=_HONCHO,
    ),
    Field("store", "Store", "text", "", "a memoryd home to share with other hosts; empty: memoryd-store in the Hermes home"),
    Field(
        "daemon", "Daemon", "select", "never",
        "auto: through memoryd's daemon while it serves the store, whose configuration counts then; never: in this process",
        options=("never", "auto"),
    ),
    Field("user", "User", "text", "default", "whose memory it is where Hermes names no user"),
    Field("private", "Private", "bool", False, "true: nothing is recorded, and no checkpoint is archived"),
    Field(
        "automation", "Automation", "select", "apart",
        "turns of cron jobs, subagents and flushes: kept apart from the user's facts, the same as the user's, or off",
        options=("apart", "same", "off"),
    ),
    Field("auto_recall", "Automatic recall", "bool", True, "true: what fits is recalled before every turn"),
    Field("recall_chars", "Recall size", "number", 4000, "characters recalled before a turn, at most", least=200, most=9000),
    Field("tools", "Tools", "bool", True, "true: the model gets memoryd's tools"),
    Field("gate_fallback_dir", "Second archive", "text", "", "a second place for checkpoints, used when the store's own fails"),
)  # fmt: skip


@attrs.frozen(slots=True)
class Settings:
    """The values of one Hermes home, typed; the fields are those of :data:`FIELDS` without the secrets."""

    backend: str = "local"
    honcho_url: str = ""
    store: str = ""
    daemon: str = "never"
    user: str = "default"
    private: bool = False
    automation: str = "apart"
    auto_recall: bool = True
    recall_chars: int = 4000
    tools: bool = True
    gate_fallback_dir: str = ""


def settings_path(hermes_home: str | os.PathLike[str]) -> Path:
    """The file; it need not exist."""
    return Path(hermes_home) / "memoryd" / "config.json"


def read_settings(hermes_home: str | os.PathLike[str]) -> Settings:
    """The settings of ``hermes_home``; defaults where there is no file.  Keys that are not known stay unread.

    Raises :class:`ConfigError`, one line that names the file and the key.
    """
    path = settings_path(hermes_home)
    table = _read(path)
    kept = {field.key: field for field in FIELDS if field.kind != "secret"}
    try:
        return Settings(**{key: typed(kept[key], value) for key, value in table.items() if key in kept})
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def typed(field: Field, value: object) -> Any:
    """``value``, text or typed, as ``field`` has it; None and blank text are its default.  Raises :class:`ConfigError`."""
    text = value.strip() if isinstance(value, str) else "" if value is None else str(value)
    if not text:
        return field.default
    match field.kind:
        case "bool":
            return _bool(field, text)
        case "number":
            return _number(field, text)
        case "select":
            return _choice(field, text)
        case "text" | "secret":
            return text


def _read(path: Path) -> Mapping[str, object]:
    try:
        table = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"{path}: is not JSON; repair it, or remove it to have the defaults") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: expected one JSON object")
    return table


def _bool(field: Field, text: str) -> bool:
    word = text.lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ConfigError(f"{field.key}: expected true or false")


def _number(field: Field, text: str) -> int:
    if not text.isascii() or not text.isdigit() or not field.least <= int(text) <= field.most:
        raise ConfigError(f"{field.key}: expected a whole number from {field.least} to {field.most}")
    return int(text)


def _choice(field: Field, text: str) -> str:
    name = text.lower()
    if name in field.options:
        return name
    if field.open:
        return text
    raise ConfigError(f"{field.key}: expected one of {', '.join(field.options)}")
