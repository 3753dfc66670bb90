"""Where things are in a Hermes home."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from memoryd.errors import ConfigError
from memoryd.hosts import Place
from memoryd_hermes._owner import STORE
from memoryd_hermes._settings import Settings

__all__ = ["hermes_home_of", "home_of", "plugin_folder", "store_home"]


def home_of(place: Place) -> Path:
    """The Hermes home that an install is about.  Raises as :func:`hermes_home_of`."""
    return hermes_home_of(place.options.get("hermes_home"), place.environ, place.home)


def hermes_home_of(given: str | None, environ: Mapping[str, str], user_home: Path) -> Path:
    """The absolute Hermes home: ``given``, else ``$HERMES_HOME``, else ``~/.hermes``.  Raises :class:`ConfigError` for an empty path."""
    text = environ.get("HERMES_HOME", "").strip() or str(user_home / ".hermes") if given is None else given.strip()
    if not text or "\0" in text:
        raise ConfigError("--hermes-home: expected the path of a directory")
    if text == "~" or text.startswith("~/"):
        return user_home / text[2:]
    return Path(os.path.abspath(text))


def plugin_folder(hermes_home: Path) -> Path:
    """Where hosts that read no entry points look for the provider."""
    return hermes_home / "plugins" / "memoryd"


def store_home(hermes_home: str | os.PathLike[str], settings: Settings) -> Path:
    """The memoryd home of a Hermes home.  Not ``<hermes_home>/memoryd``: the host copies that one when it clones a profile."""
    if settings.store:
        return Path(os.path.abspath(os.path.expanduser(settings.store)))
    return Path(os.path.realpath(hermes_home)) / STORE
