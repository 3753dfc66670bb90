"""Where memoryd keeps things, and where it looks for its configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from memoryd.errors import ConfigError

__all__ = ["FILE_NAME", "config_paths", "log_path", "resolve_home", "resolve_socket"]

FILE_NAME = "memoryd.toml"
_LONGEST = 107 if sys.platform.startswith("linux") else 103  # bytes that the address of a unix socket has room for


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


def resolve_socket(given: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The daemon's socket: ``given``, else ``$MEMORYD_SOCKET``, else ``memoryd/memoryd.sock`` in ``$XDG_RUNTIME_DIR``, else in
    ``$XDG_STATE_HOME`` (``~/.local/state``).

    Nothing is created.  Raises :class:`ConfigError` where the path has more bytes than a socket's address (107; macOS 103).
    """
    env = os.environ if environ is None else environ
    if given is not None:
        where, path = "--socket", _absolute("--socket", os.fspath(given), env)
    elif env.get("MEMORYD_SOCKET"):
        where, path = "MEMORYD_SOCKET", _absolute("MEMORYD_SOCKET", env["MEMORYD_SOCKET"], env)
    elif env.get("XDG_RUNTIME_DIR", "").startswith("/"):
        where, path = "XDG_RUNTIME_DIR", Path(env["XDG_RUNTIME_DIR"]) / "memoryd/memoryd.sock"
    else:
        where, path = "XDG_STATE_HOME", _xdg(env, "XDG_STATE_HOME", ".local/state") / "memoryd/memoryd.sock"
    if (size := len(os.fsencode(path))) > _LONGEST:
        raise ConfigError(f"{where}: the socket's path has {size} bytes, {_LONGEST} are possible; set MEMORYD_SOCKET to a shorter one")
    return path


def config_paths(home: Path, profile: str, environ: Mapping[str, str] | None = None) -> tuple[Path, Path]:
    """The general file and the profile's file, whether they exist or not; a later one wins over an earlier one.

    The general file is the one in the home where that exists, else the one in ``$XDG_CONFIG_HOME/memoryd``.
    """
    # not above: who asks for the home or the socket needs the standard library only
    from memoryd.core import profile_folder

    env = os.environ if environ is None else environ
    general = home / FILE_NAME
    if not os.path.lexists(general):
        general = _xdg(env, "XDG_CONFIG_HOME", ".config") / "memoryd" / FILE_NAME
    return general, home / "profiles" / profile_folder(profile) / FILE_NAME


def log_path(home: Path, file: str) -> Path | None:
    """Where ``logging.file`` is; None where it names none, and records go to stderr."""
    return home / Path(file).expanduser() if file else None


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
