"""Finds the agent programs that adapters know, and says where a plan is made for.  Only a chosen one is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from memoryd.errors import ConfigError
from memoryd.hosts._port import Host, Place
from memoryd.settings import resolve_home

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["check_python", "find_host", "host_names", "make_place"]

GROUP = "memoryd.hosts"
_PASSING = "archive-v"  # where uvx keeps the environment of one run
_PROBE_SECONDS = 60  # a cold start on a busy machine; the import itself takes milliseconds


def _points() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # 10 ms, for those who ask

    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.dist is None or point.dist.name != "memoryd"):
        found.setdefault(point.name, point)  # of two with one name, memoryd's own counts
    return dict(sorted(found.items()))


def host_names() -> tuple[str, ...]:
    """Every agent program that an installed package knows, by name; nothing is imported."""
    return tuple(_points())


def find_host(name: str) -> Host:
    """The host of that name.  Raises :class:`ConfigError`, which lists those there are."""
    points = _points()
    if name not in points:
        raise ConfigError(f'host: "{name}" is unknown; there are: {", ".join(points)}')
    return _loaded(points[name])


def _loaded(point: EntryPoint) -> Host:
    try:
        return cast(Host, point.load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(f'host: "{point.name}" cannot be loaded ({point.value}): {type(error).__name__}: {error}') from error


def make_place(
    home: str | os.PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Place:
    """Where this process would install: its user's home, memoryd's home, the interpreter that runs it, the working directory.

    Raises :class:`ConfigError` where one of them cannot be told.
    """
    env = dict(os.environ if environ is None else environ)
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise ConfigError("the working directory does not exist") from None
    user = Path(env["HOME"]) if env.get("HOME", "").startswith("/") else Path.home()
    root = resolve_home(home, env)
    for path in (user, root, here, sys.executable):
        try:
            os.fspath(path).encode("utf-8")
        except UnicodeEncodeError:
            raise ConfigError(f"{os.fspath(path)!r} is not UTF-8 text, which hosts' settings are") from None
    return Place(home=user, memoryd_home=root, python=sys.executable, cwd=here, environ=env, options=dict(options or {}))


def check_python(python: str) -> None:
    """Raises :class:`ConfigError` where ``python`` cannot import memoryd the way that hooks start it, or will soon be gone."""
    if any(part.startswith(_PASSING) for part in Path(python).parts):
        raise ConfigError(f"{python} is in a cache that may be cleared: install memoryd ('uv tool install memoryd') and install again")
    try:
        command = [python, "-I", "-c", "import memoryd"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_PROBE_SECONDS, check=False)
        said = done.stderr.strip().rpartition("\n")[2]
        problem = (said or f"exit code {done.returncode}") if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = f"{type(error).__name__}: {error}"
    if problem:
        raise ConfigError(f"{python} -I cannot import memoryd, so hooks could not run: install memoryd into it ({problem})")
