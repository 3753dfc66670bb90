"""Puts the sources together: defaults, general file, profile's file, environment, arguments; the later wins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from memoryd.core import Config, Value, build_config
from memoryd.errors import ConfigError
from memoryd.settings._files import KEYS, Source, read_environment, read_file, read_mapping
from memoryd.settings._paths import config_paths, resolve_home

__all__ = ["Loaded", "Shown", "describe", "load_config"]


@attrs.frozen(slots=True, eq=False, repr=False)
class Loaded(Value):
    """A configuration and where each value came from.

    ``sources`` maps full names (``gate.mode``) to a file's path, a variable's name or ``arguments``; what is not in it has its
    default.  ``files`` are those that were read.
    """

    config: Config
    home: Path
    profile: str
    sources: Mapping[str, str]
    files: tuple[Path, ...]


@attrs.frozen(slots=True, eq=False, repr=False)
class Shown(Value):
    """One line of ``memoryd config show``."""

    key: str
    value: Any
    source: str


def load_config(
    home: str | os.PathLike[str] | None = None,
    profile: str = "default",
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """The configuration of ``profile``.

    ``overrides`` are nested tables or full names and win over everything.  Raises :class:`ConfigError`: one line with place, key,
    what was expected and, for an unknown key, the nearest known one.  Nothing is created.
    """
    env = os.environ if environ is None else environ
    root = resolve_home(home, env)
    found = [(path, source) for path in config_paths(root, profile, env) if (source := read_file(path)) is not None]
    sources = [source for _, source in found]
    merged = _merged([*sources, read_environment(env), read_mapping("arguments", overrides or {})])
    return Loaded(_built(merged), root, profile, merged.places, tuple(path for path, _ in found))


def _merged(sources: list[Source]) -> Source:
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    backends: dict[str, Mapping[str, Any]] = {}
    refused: tuple[str, ...] = ()
    for source in sources:
        refused = source.refused if "backend" in source.values else refused
        values |= source.values
        places |= source.places
        for name, table in source.backends.items():
            backends[name] = {**backends.get(name, {}), **table}
    return Source(values, places, backends, refused)


def _built(merged: Source) -> Config:
    try:
        return build_config(merged.values, merged.backends, merged.refused)
    except ConfigError as error:
        # each value is right by itself; two of them contradict each other
        place = merged.places.get(str(error).partition(":")[0])
        raise ConfigError(f"{place}: {error}" if place else str(error)) from None


def describe(loaded: Loaded) -> list[Shown]:
    """Every setting with its value and source, in the order of the file; backends' own tables last."""
    values = {path: key.value(loaded.config) for path, key in KEYS.items()}
    for name, table in loaded.config.backends.items():
        values |= {f"backends.{name}.{key}": value for key, value in table.items()}
    return [Shown(path, value, loaded.sources.get(path, "default")) for path, value in values.items()]
