"""The settings file from the side that writes it: what the host's setup asks for, and where the answers go.

Settings go to ``<hermes_home>/memoryd/config.json``, secrets through the host into the profile's ``.env``, and nowhere else.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memoryd.errors import ConfigError
from memoryd_hermes._settings import FIELDS, Field, settings_path, typed

__all__ = ["save", "schema", "set_up"]

Ask = Callable[[Field, str], str]


def schema() -> list[dict[str, Any]]:
    """The fields that the host's wizard asks for, in its words."""
    return [_described(field) for field in FIELDS if field.prompted]


def _described(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"key": field.key, "description": f"{field.label}: {field.doc}", "default": field.default}
    if field.kind == "secret":
        found |= {"secret": True, "env_var": field.env_key}
    if field.options:
        found["choices"] = list(field.options)
    if field.when:
        found["when"] = dict(field.when)
    return found


def save(values: Mapping[str, Any], hermes_home: str | os.PathLike[str]) -> None:
    """Set what ``values`` names in the settings of ``hermes_home``; blank values go back to the default, other settings stay.

    Values may all be text.  Secrets and unknown names are passed over.  The file is written whole or not at all.
    Raises :class:`ConfigError` naming what is wrong, and then nothing is written.
    """
    path = settings_path(hermes_home)
    table = _before(path)
    for field in FIELDS:
        if field.kind == "secret" or field.key not in values:
            continue
        value = values[field.key]
        checked = typed(field, value)
        table.pop(field.key, None)
        if value is not None and str(value).strip():
            table[field.key] = checked
    _write(path, json.dumps(table, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")


def _before(path: Path) -> dict[str, Any]:
    """What the file holds.  One that is damaged is not replaced: what it held is for its owner to see."""
    try:
        table = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read ({type(error).__name__}); repair or remove it") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: expected one JSON object; repair or remove it")
    return table


def _write(path: Path, content: bytes) -> None:
    from memoryd.hosts import write_file  # with SQLite, which those who only read the settings do not pay for

    Path(os.path.realpath(path)).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_file(path, content)


# -- the setup inside the host -----------------------------------------------------------------------------------------------


def set_up(hermes_home: str | os.PathLike[str], config: dict[str, Any], ask: Ask | None = None) -> None:
    """What ``hermes memory setup memoryd`` does: ask (at a terminal), save, and make memoryd the provider.

    ``config`` is the host's own reading of config.yaml; the file is edited in place, so that its comments stay.
    """
    from memoryd_hermes._config_yaml import HostConfig

    asking = ask or (_ask if sys.stdin.isatty() else _keep)
    answers, secrets = _answers(_before(settings_path(hermes_home)), asking)
    save(answers, hermes_home)
    for name, value in secrets.items():
        _save_secret(hermes_home, name, value)
    host = HostConfig.read(Path(hermes_home))
    host.set("memory", "provider", "memoryd")
    if host.changed:
        _write(host.path, host.text.encode())
    config.setdefault("memory", {})["provider"] = "memoryd"
    print(f"\n  Memory provider: memoryd\n  Settings: {settings_path(hermes_home)}")
    print("  Start a new session to activate.\n")


def _answers(table: Mapping[str, Any], ask: Ask) -> tuple[dict[str, str], dict[str, str]]:
    answers: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for field in FIELDS:
        if not field.prompted or any(answers.get(key) != value for key, value in field.when.items()):
            continue
        current = str(table.get(field.key, field.default))
        answer = ask(field, "" if field.kind == "secret" else current).strip()
        if field.kind != "secret":
            answers[field.key] = answer
        elif answer:
            secrets[field.env_key] = answer
    return answers, secrets


def _keep(field: Field, current: str) -> str:
    return current


def _ask(field: Field, current: str) -> str:
    choices = f" ({', '.join(field.options)})" if field.options else ""
    if field.kind == "secret":
        from getpass import getpass

        return getpass(f"  {field.label}, blank to keep: ")
    return input(f"  {field.label}{choices} [{current}]: ") or current


def _save_secret(hermes_home: str | os.PathLike[str], name: str, value: str) -> None:
    with _home_of(hermes_home):
        importlib.import_module("hermes_cli.config").save_env_value(name, value)


@contextmanager
def _home_of(hermes_home: str | os.PathLike[str]) -> Iterator[None]:
    """The host writes ``.env`` into the home that it thinks is current: say which."""
    host = importlib.import_module("hermes_constants")
    token = host.set_hermes_home_override(str(hermes_home))
    try:
        yield
    finally:
        host.reset_hermes_home_override(token)
