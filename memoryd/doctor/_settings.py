"""The configuration and what it names: settings that cannot be read, backends and plug-ins that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from memoryd.core import Config
from memoryd.doctor._verdict import broken, doubtful, fine
from memoryd.errors import BackendNotFound, MemorydError
from memoryd.hosts import Check
from memoryd.runtime import ask_backend, discover_backends, find_backend
from memoryd.settings import Loaded, load_config, unknown_variables

__all__ = ["backends", "plugins", "read_settings"]


def read_settings(home: Path, profile: str) -> tuple[Config, Check]:
    """The configuration of a profile, or the default one where it cannot be read."""
    try:
        found = load_config(home, profile)
    except MemorydError as error:
        remedy = "correct that place; 'memoryd config show --default' prints a sample, 'memoryd config check' looks again"
        return Config(), broken("configuration", str(error), remedy)
    return found.config, _settings(found)


def _settings(found: Loaded) -> Check:
    config = found.config
    if warnings := (*config.warnings, *unknown_variables(config)):
        return doubtful("configuration", "; ".join(warnings), "correct it; 'memoryd config check' looks again")
    files = ", ".join(str(path) for path in found.files) or "no file"
    return fine("configuration", f"{files}; backend {config.backend}")


def plugins(home: Path) -> Iterator[Check]:
    """What lies in a folder of plug-ins and is none."""
    found = discover_backends(home)
    for one in found.broken:
        yield doubtful("plugin", f"{one.place}: {one.reason}", "mend it or move it away; docs/howto/write-a-backend.md shows one")
    for hidden in found.shadowed:
        kept = found.found[hidden.name]
        yield doubtful("plugin", f"{hidden.place} is hidden by {kept.origin} {hidden.name}", "give it another name")
    if not found.broken and not found.shadowed:
        yield fine("plugin", f"backends: {', '.join(sorted(found.found))}")


def backends(home: Path, profile: str, config: Config) -> Iterator[Check]:
    """Whether each backend that is configured could be used: packages and settings, no network."""
    names = [name for name in (config.backend, *config.mirrors) if name != "auto"]
    for name in names:
        try:
            _, available = ask_backend(find_backend(name, home), home, profile, config)
        except BackendNotFound as error:
            yield broken(f"backend {name}", str(error), f'install it, or set backend to "local" instead of "{name}"')
        except MemorydError as error:
            yield broken(f"backend {name}", str(error), f"mend [backends.{name}] or the plug-in, or choose another backend")
        else:
            if not available:
                yield broken(f"backend {name}", available.reason, f'set what is missing, or set backend to "local" instead of "{name}"')
