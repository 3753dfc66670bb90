"""Where backends come from: bundled ones, the user's folder, the project's folder, installed packages; the earlier wins.

A working tree must never shadow a shipped memory, so the order is not that of a search path.  Nothing of a backend is imported here;
:meth:`FoundBackend.load` does that for a chosen one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import attrs

from memoryd.core import BackendFactory, Value
from memoryd.runtime._strangers import strangers_code

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["BrokenPlugin", "Discovery", "FoundBackend", "Origin", "discover"]

Origin = Literal["program", "bundled", "user", "project", "package"]

GROUP = "memoryd.backends"
PROJECT_SWITCH = "MEMORYD_ENABLE_PROJECT_PLUGINS"
_RESERVED = frozenset({"auto"})
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@attrs.frozen(slots=True, eq=False, repr=False)
class FoundBackend(Value):
    """A backend that could be loaded.  ``place`` is a file, or the object and the distribution that has it."""

    name: str
    origin: Origin
    place: str
    _source: EntryPoint | Path | BackendFactory = attrs.field(repr=False)

    def load(self) -> BackendFactory:
        """Import it.  Raises :class:`BackendPermanent`, with the reason, where that fails."""
        if isinstance(self._source, Path):
            from memoryd.runtime._folder import load_plugin  # only where there is a folder of plugins

            return load_plugin(self.name, self._source)
        if self.origin == "program":
            return cast(BackendFactory, self._source)
        with strangers_code(self.name, "imported"):
            return cast(BackendFactory, cast("EntryPoint", self._source).load())


@attrs.frozen(slots=True, eq=False, repr=False)
class BrokenPlugin(Value):
    """Something in a folder of plugins that is none, and why."""

    name: str
    origin: Origin
    place: str
    reason: str


@attrs.frozen(slots=True, eq=False, repr=False)
class Discovery(Value):
    """All that was found: what a name means, what an earlier one hides, what is no plugin."""

    found: Mapping[str, FoundBackend]
    shadowed: tuple[FoundBackend, ...] = ()
    broken: tuple[BrokenPlugin, ...] = ()


def discover(
    home: Path, programs: Mapping[str, BackendFactory], environ: Mapping[str, str] | None = None
) -> Discovery:
    """Look in every place.  ``programs`` are the factories that the running program gave itself; they come first."""
    env = os.environ if environ is None else environ
    found: dict[str, FoundBackend] = {}
    shadowed: list[FoundBackend] = []
    broken: list[BrokenPlugin] = []
    for candidate in _candidates(home, programs, env):
        if isinstance(candidate, BrokenPlugin):
            broken.append(candidate)
        elif found.setdefault(candidate.name, candidate) is not candidate:
            shadowed.append(candidate)
    return Discovery(found, tuple(shadowed), tuple(broken))


def _project_plugins(environ: Mapping[str, str]) -> Path | None:
    """The folder of the working directory's plugins, or None where they are not switched on."""
    if environ.get(PROJECT_SWITCH, "").strip().lower() not in ("1", "true", "yes", "on"):
        return None
    return Path.cwd() / ".memoryd" / "plugins"


def _candidates(
    home: Path, programs: Mapping[str, BackendFactory], environ: Mapping[str, str]
) -> Iterator[FoundBackend | BrokenPlugin]:
    """Everything there is, the earlier first."""
    for name, factory in programs.items():
        yield FoundBackend(name, "program", "registered by the program", factory)
    bundled, packages = _points()
    yield from bundled
    yield from _in_folder(home / "plugins", "user")
    if (project := _project_plugins(environ)) is not None:
        yield from _in_folder(project, "project")
    yield from packages


def _points() -> tuple[list[FoundBackend | BrokenPlugin], list[FoundBackend | BrokenPlugin]]:
    """The entry points of memoryd itself, and those of other packages."""
    from importlib.metadata import entry_points  # 10 ms, which a program with factories of its own does not pay

    bundled: list[FoundBackend | BrokenPlugin] = []
    packages: list[FoundBackend | BrokenPlugin] = []
    for point in entry_points(group=GROUP):
        owner = point.dist.name if point.dist is not None else "?"
        ours = owner == "memoryd"
        place = f"{point.value} ({owner} {point.dist.version})" if point.dist is not None else point.value
        (bundled if ours else packages).append(_candidate(point.name, "bundled" if ours else "package", place, point))
    return bundled, packages


def _in_folder(folder: Path, origin: Origin) -> Iterator[FoundBackend | BrokenPlugin]:
    """``NAME/__init__.py`` and ``NAME.py``, by name, packages first; what begins with a dot or ``_`` is none."""
    try:
        inside = sorted(os.scandir(folder), key=lambda entry: (entry.name.removesuffix(".py"), not entry.is_dir()))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield BrokenPlugin(folder.name, origin, str(folder), f"cannot be read: {error.strerror}")
        return
    for entry in inside:
        path = Path(entry.path)
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            init = path / "__init__.py"
            yield _candidate(entry.name, origin, str(path), init) if init.is_file() else BrokenPlugin(
                entry.name, origin, str(path), "has no __init__.py"
            )
        elif path.suffix == ".py":
            yield _candidate(path.stem, origin, str(path), path)


def _candidate(name: str, origin: Origin, place: str, source: EntryPoint | Path) -> FoundBackend | BrokenPlugin:
    if not _NAME.fullmatch(name):
        return BrokenPlugin(name, origin, place, "its name is not made of lower-case letters, digits, - and _")
    if name in _RESERVED:
        return BrokenPlugin(name, origin, place, f'the name "{name}" is taken by memoryd')
    return FoundBackend(name, origin, place, source)

