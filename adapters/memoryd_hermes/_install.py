"""What ``memoryd install hermes`` would change in a Hermes home: one value of config.yaml, and the folder that older hosts load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from memoryd.errors import ConfigError
from memoryd.hosts import Change, Place, Plan
from memoryd_hermes._checks import gate_obstacle
from memoryd_hermes._config_yaml import HostConfig, truthy
from memoryd_hermes._places import home_of, plugin_folder, store_home
from memoryd_hermes._settings import Settings, read_settings, settings_path
from memoryd_hermes._version import Installed, installed_host

__all__ = ["plan_install", "plan_uninstall"]

NAME = "memoryd"
_ARM = "compression", "checkpoint_required"
_PROVIDER = "memory", "provider"
_MANIFEST = "plugin.yaml"


def plan_install(place: Place) -> Plan:
    """memoryd as the memory provider; ``gate`` ``yes`` also arms the host's gate, after it was tried, and ``no`` disarms it.

    Raises :class:`ConfigError` where config.yaml cannot be edited, or the gate would not hold here.
    """
    home, host = home_of(place), installed_host()
    config, settings = HostConfig.read(home), read_settings(home)
    before = config.get(*_PROVIDER)
    config.set(*_PROVIDER, NAME)
    if gate := place.options.get("gate"):
        _set_gate(config, gate == "yes", home, settings, host)
    folder = _folder_changes(home) if _wants_folder(home, host, config) else ()
    return Plan((*folder, *_config_change(config, "memoryd is the memory provider")), tuple(_notes(home, settings, host, config, before)))


def plan_uninstall(place: Place) -> Plan:
    """No memory provider, and no gate that nobody could satisfy.  The store stays, unless ``purge`` is given."""
    home = home_of(place)
    config = HostConfig.read(home)
    if config.get(*_PROVIDER) == NAME:
        config.set(*_PROVIDER, "")
        if truthy(config.get(*_ARM)):
            config.set(*_ARM, False)  # an armed gate without a provider fails every turn
    changes = (*_config_change(config, "no memory provider, no gate"), *_folder_removal(home))
    return _purged(home, changes) if place.options.get("purge") else Plan(changes, (_kept(home),))


# -- config.yaml -------------------------------------------------------------------------------------------------------------


def _config_change(config: HostConfig, why: str) -> tuple[Change, ...]:
    return (Change(config.path, config.text.encode(), why),) if config.changed else ()


def _set_gate(config: HostConfig, armed: bool, home: Path, settings: Settings, host: Installed | None) -> None:
    was = truthy(config.get(*_ARM))
    if armed and not was and (reason := gate_obstacle(home, settings, host, config)):
        raise ConfigError(f"--gate: {reason}; the gate was not armed")
    if armed != was:
        config.set(*_ARM, armed)


# -- the folder --------------------------------------------------------------------------------------------------------------


def _wants_folder(home: Path, host: Installed | None, config: HostConfig) -> bool:
    """Whether the host needs the folder: it reads no entry points, or not in its isolation, or is not here to be asked."""
    if plugin_folder(home).is_symlink():
        return False
    isolated = config.get("plugins", "isolation") == "host"
    return host is None or not host.entry_points or isolated or plugin_folder(home).is_dir()


def _folder_changes(home: Path) -> tuple[Change, ...]:
    folder = plugin_folder(home)
    wanted = {folder / name: content for name, content in _shipped().items()}
    return tuple(
        Change(path, content, "what Hermes loads", 0o644) for path, content in wanted.items() if _content(path) != content
    )  # fmt: skip


def _folder_removal(home: Path) -> tuple[Change, ...]:
    folder = plugin_folder(home)
    if folder.is_symlink() or not folder.is_dir():
        return ()
    ours = [folder / name for name in _shipped()]
    compiled = [path for path in folder.glob("__pycache__/*.pyc") if f"{path.name.split('.')[0]}.py" in _shipped()]
    return tuple(Change(path, None, "what Hermes loads") for path in (*ours, *compiled) if path.is_file())


def _shipped() -> Mapping[str, bytes]:
    """The files of the folder ``memoryd``, by their path in it; as a folder of its own it names the package that it needs.

    Inside the package it does not: there it is installed, and newer hosts would build an environment of their own for what is named.
    """
    found = dict(_below(files("memoryd_hermes").joinpath(NAME), PurePosixPath()))
    return found | {_MANIFEST: found[_MANIFEST] + b"pip_dependencies:\n  - memoryd\n"}


def _below(folder: Traversable, place: PurePosixPath) -> Iterator[tuple[str, bytes]]:
    for child in sorted(folder.iterdir(), key=lambda child: child.name):
        if child.is_file():
            yield str(place / child.name), child.read_bytes()
        elif child.name != "__pycache__":
            yield from _below(child, place / child.name)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


# -- what is said ------------------------------------------------------------------------------------------------------------


def _notes(home: Path, settings: Settings, host: Installed | None, config: HostConfig, before: object) -> Iterator[str]:
    store = store_home(home, settings)
    yield f"turns, memories and checkpoints are recorded in {store}; `memoryd --home {store} status` looks at them"
    if before not in (NAME, None, ""):
        yield f"memory.provider was {before}: what that provider keeps stays where it is"
    if host is None:
        yield "no Hermes is installed beside this memoryd: install memoryd into the environment of Hermes too (pip install memoryd)"
    elif not host.checkpoints:
        yield f"Hermes {host.version} cannot be refused a compaction: every transcript is archived before, as far as that succeeds"
    elif not truthy(config.get(*_ARM)):
        yield "a failed archive does not stop a compaction; `memoryd install hermes --gate` makes it"
    yield "start a new session of Hermes"


def _kept(home: Path) -> str:
    try:
        store = store_home(home, read_settings(home))
    except ConfigError:
        store = store_home(home, Settings())
    return f"what was recorded stays in {store}, the settings in {settings_path(home)}; --purge deletes both"


def _purged(home: Path, changes: tuple[Change, ...]) -> Plan:
    """Without the store, except where it is another's too."""
    store, shared = store_home(home, Settings()), read_settings(home).store
    settings = settings_path(home)
    removal = (Change(settings, None, "the settings"),) if settings.exists() else ()
    notes = (f"{shared} is shared with other hosts and stays",) if shared else ()
    return Plan((*changes, *removal), notes, erases=(store,) if store.is_dir() else ())
