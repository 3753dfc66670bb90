"""One source of settings: reads it, and checks every key and value.  Messages name the place and the key, never a value."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from memoryd.core import Key, Value, config_keys
from memoryd.errors import ConfigError
from memoryd.settings._secrets import refuse_secrets

__all__ = ["KEYS", "Source", "checked", "read_environment", "read_file", "read_mapping"]

KEYS: Mapping[str, Key] = {key.path: key for key in config_keys()}
_SECTIONS = frozenset(key.section for key in KEYS.values() if key.section)
_MAX_BYTES = 1 << 20

# Short names beside MEMORYD_<SECTION>_<KEY>; the first that is set wins.
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "backend": ("MEMORYD_BACKEND", "HERMES_MEMORY_BACKEND"),
    "gate.mode": ("MEMORYD_GATE", "MEMORYD_GATE_MODE"),
}


@attrs.frozen(slots=True, eq=False, repr=False)
class Source(Value):
    """What one place says: checked values by full name, with the place of each; ``backends`` are tables passed on as they are,
    ``refused`` primaries beside the first."""

    values: Mapping[str, Any] = attrs.field(factory=dict)
    places: Mapping[str, str] = attrs.field(factory=dict)
    backends: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict, repr=False)
    refused: tuple[str, ...] = ()


# -- files -------------------------------------------------------------------------------------------------------------------


def read_file(path: Path) -> Source | None:
    """The settings of one file, or None where it does not exist.  Raises :class:`ConfigError`, one line."""
    try:
        data = _read_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{one_line(path)}: cannot be read: {error.strerror}") from None
    return _from_toml(one_line(path), data)


def _from_toml(where: str, data: bytes) -> Source:
    import tomllib  # only where there is a file

    try:
        return read_mapping(where, tomllib.loads(data.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: is not UTF-8 text (byte {error.start})") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: is not valid TOML: {one_line(error)}") from None
    except RecursionError:
        raise ConfigError(f"{where}: is not valid TOML: nested too deeply") from None


def _read_bytes(path: Path) -> bytes:
    # non-blocking: a named pipe in the file's place must not hang the program
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigError(f"{one_line(path)}: expected a file")
        data = os.read(descriptor, _MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{one_line(path)}: is larger than 1 MiB")
    return data


def one_line(text: object) -> str:
    """``text`` without line breaks and control characters, so that a message stays one line."""
    return "".join(char if char.isprintable() else "?" for char in str(text))


# -- tables ------------------------------------------------------------------------------------------------------------------


def read_mapping(where: str, table: Mapping[str, Any]) -> Source:
    """The settings of nested tables (``{"gate": {"mode": "warn"}}``) or full names (``{"gate.mode": "warn"}``)."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: expected tables of settings{_got(table)}")
    given = dict(_flat(where, table))
    refused: tuple[str, ...] = ()
    if "backend" in given:
        given["backend"], refused = _primaries(given["backend"])
    values = {path: checked(where, path, value) for path, value in given.items()}
    backends = _backend_tables(where, table.get("backends", {}))
    own = [f"backends.{name}.{key}" for name, inner in backends.items() for key in inner]
    return Source(values, dict.fromkeys([*values, *own], where), backends, refused)


def _primaries(value: object) -> tuple[object, tuple[str, ...]]:
    """The one primary of ``value``: of several names (a list, or with commas) the first; the others are refused."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        return value, ()
    names = list(dict.fromkeys(part.strip().lower() for part in parts if part.strip()))
    return (names[0], tuple(names[1:])) if names else (value, ())


def _flat(where: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if name == "backends":
            continue
        if name in _SECTIONS:
            if not isinstance(value, Mapping):
                names = ", ".join(key.name for key in KEYS.values() if key.section == name)
                raise ConfigError(f"{where}: {name}: expected a table [{name}] with {names}")
            yield from ((f"{name}.{inner}", item) for inner, item in value.items())
        elif isinstance(value, Mapping) and value:
            yield from ((f"{name}.{inner}", item) for inner, item in value.items())
        else:
            yield str(name), value


def checked(where: str, path: str, value: object) -> Any:
    """``value`` in the form that the schema keeps.  Raises :class:`ConfigError` with place, key, what was expected."""
    key = KEYS.get(path)
    if key is None:
        raise unknown(where, path, KEYS)
    try:
        return key.kind.check(value)
    except ValueError:
        raise ConfigError(f"{where}: {path}: expected {key.kind.expected}{_got(value)}") from None


def _got(value: object) -> str:
    """What was given instead, as far as it can be said without echoing a value that may be a misplaced secret."""
    match value:
        case str():
            return "; this text is not" if value else ", got an empty text"
        case bool():
            return f", got {str(value).lower()}"
        case int() | float():
            return f", got the number {value}" if abs(value) < 10**15 else ", got another number"
        case list() | tuple():
            return ", got a list"
        case Mapping():
            return ", got a table"
        case _:
            return f", got a {type(value).__name__}"


def unknown(where: str, name: str, known: Iterable[str]) -> ConfigError:
    """The error for a name that is no setting, with the nearest one that is."""
    from difflib import get_close_matches  # only where there is something to say

    names = {candidate.lower(): candidate for candidate in known}
    nearest = get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean {names[nearest[0]]}?" if nearest else "`memoryd config show` lists the keys"
    return ConfigError(f"{where}: {one_line(name)[:80]}: unknown key; {hint}")


def _backend_tables(where: str, tables: object) -> dict[str, Mapping[str, Any]]:
    if not isinstance(tables, Mapping):
        raise ConfigError(f"{where}: backends: expected tables [backends.NAME]")
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise ConfigError(f"{where}: backends.{one_line(name)}: expected a table [backends.{one_line(name)}]")
        refuse_secrets(where, f"backends.{one_line(name)}", table)
    named: dict[str, Mapping[str, Any]] = {name.strip().lower(): dict(table) for name, table in tables.items()}
    if len(named) < len(tables):
        raise ConfigError(f"{where}: backends: names differ only in case; expected one table for each backend")
    return named


# -- the environment ---------------------------------------------------------------------------------------------------------


def variables(key: Key) -> tuple[str, ...]:
    """The environment variables of one setting; the first that is set wins."""
    return _ALIASES.get(key.path, ("MEMORYD_" + key.path.replace(".", "_").upper(),))


def read_environment(environ: Mapping[str, str]) -> Source:
    """The settings of ``MEMORYD_*`` variables; an empty one counts as not set."""
    _refuse_unknown(environ)
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for path, key in KEYS.items():
        name = next((name for name in variables(key) if environ.get(name, "").strip()), None)
        if name is not None:
            values[path], places[path] = _parsed(name, key, environ[name]), name
    if "backend" not in values:
        return Source(values, places)
    # two variables that name different primaries are as much a second one as a list is
    primary, refused = _primaries(",".join(environ.get(name, "") for name in variables(KEYS["backend"])))
    return Source({**values, "backend": primary}, places, refused=refused)


def _parsed(name: str, key: Key, text: str) -> Any:
    try:
        return key.kind.parse(text)
    except ValueError:
        raise ConfigError(f"environment: {name}: expected {key.kind.expected}") from None


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = {name for key in KEYS.values() for name in variables(key)}
    prefixes = tuple(f"MEMORYD_{section.upper()}_" for section in _SECTIONS)
    for name in environ:
        if name.startswith(prefixes) and name not in known:
            raise unknown("environment", name, known)
