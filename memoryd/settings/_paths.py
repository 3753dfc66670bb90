"""Where memoryd keeps things, and where it looks for its configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from memoryd.core import profile_folder
from memoryd.errors import ConfigError

__all__ = ["FILE_NAME", "config_paths", "resolve_home"]

FILE_NAME = "memoryd.toml"


def resolve_home(given: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The absolute home directory: ``given``, else ``$MEMORYD_HOME``, else ``$XDG_DATA_HOME/memoryd``, else ``~/.local/share/memoryd``.

    Nothing is created.  Raises :class:`ConfigError` where no directory can be told.
    """
    env = os.environ if environ is None else environ
    if given is not None:
        if not isinstance(given, str | os.PathLike):
            raise ConfigError(f"--home: expected the path of a directory, got {type(given).__name__}")
        return _absolute("--home", os.fspath(given), env)
    if env.get("MEMORYD_HOME"):
        return _absolute("MEMORYD_HOME", env["MEMORYD_HOME"], env)
    return _xdg(env, "XDG_DATA_HOME", ".local/share") / "memoryd"


def config_paths(home: Path, profile: str, environ: Mapping[str, str] | None = None) -> tuple[Path, Path]:
    """The general file and the profile's file, whether they exist or not; a later one wins over an earlier one.

    The general file is the one in the home where that exists, else the one in ``$XDG_CONFIG_HOME/memoryd``.
    """
    env = os.environ if environ is None else environ
    general = home / FILE_NAME
    if not os.path.lexists(general):
        general = _xdg(env, "XDG_CONFIG_HOME", ".config") / "memoryd" / FILE_NAME
    return general, home / "profiles" / profile_folder(profile) / FILE_NAME


def _xdg(env: Mapping[str, str], name: str, default: str) -> Path:
    given = env.get(name, "")
    # the XDG rules: a relative path counts as not set
    return Path(given) if given.startswith("/") else _user_home(env) / default


def _user_home(env: Mapping[str, str]) -> Path:
    if env.get("HOME"):
        return _absolute("HOME", env["HOME"], env)
    try:
        return Path.home()
    except RuntimeError:
        raise ConfigError("environment: HOME: is not set and this user has no home directory; set MEMORYD_HOME") from None


def _absolute(where: str, text: str, env: Mapping[str, str]) -> Path:
    if not text or "\0" in text:
        raise ConfigError(f"{where}: expected the path of a directory")
    if text == "~" or text.startswith("~/"):
        return _user_home(env) / text[2:]
    try:
        return Path(os.path.abspath(text))
    except FileNotFoundError:
        raise ConfigError(f"{where}: is relative and the working directory does not exist; give an absolute path") from None
