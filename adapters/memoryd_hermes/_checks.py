"""What ``memoryd doctor`` finds out about a Hermes home, each with what to do about it; and whether its gate would hold."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.core import scope
from memoryd.errors import ConfigError, MemorydError
from memoryd.hosts import Check, CheckState, Place
from memoryd_hermes._config import store_config, without_remotes
from memoryd_hermes._config_yaml import HostConfig, truthy
from memoryd_hermes._places import home_of, plugin_folder, store_home
from memoryd_hermes._settings import Settings, read_settings
from memoryd_hermes._version import Installed, installed_host

if TYPE_CHECKING:
    from memoryd.blocking import Memory

__all__ = ["checks", "gate_obstacle"]

_PROBE = [{"role": "user", "content": "Does the gate hold?"}, {"role": "assistant", "content": "This line is being archived to find out."}]
_REINSTALL = "memoryd install hermes"


def checks(place: Place) -> list[Check]:
    """In the order in which they matter; one of them says why where nothing can be looked at."""
    home = home_of(place)
    try:
        config, settings = HostConfig.read(home), read_settings(home)
    except ConfigError as error:
        return [Check("hermes settings", "fail", str(error), "repair the file, or remove it")]
    host = installed_host()
    if config.get("memory", "provider") != "memoryd" and not _armed(config):
        return [Check("hermes provider", "skip", f"{home} uses {config.get('memory', 'provider') or 'no memory provider'}", "")]
    found = [_provider(home, config, host), _gate(config, host), *_authorities(config)]
    return [*found, _store(store_home(home, settings), settings)]


def _armed(config: HostConfig) -> bool:
    return truthy(config.get("compression", "checkpoint_required"))


def _provider(home: Path, config: HostConfig, host: Installed | None) -> Check:
    name = "hermes provider"
    if config.get("memory", "provider") != "memoryd":
        return Check(name, "skip", f"memory.provider is {config.get('memory', 'provider') or 'empty'}")
    if "memoryd" in (config.get("plugins", "disabled") or ()):
        return Check(name, "fail", "plugins.disabled names memoryd, so Hermes does not load it", "hermes plugins enable memoryd")
    if not plugin_folder(home).is_dir() and not (host is not None and host.entry_points):
        return Check(name, "fail", f"memory.provider is memoryd, but {plugin_folder(home)} is missing", _REINSTALL)
    if host is None:
        return Check(name, "ok", "memory.provider is memoryd; no Hermes is installed beside this memoryd, so its version is unknown")
    return Check(name, "ok", f"memory.provider is memoryd, Hermes {host.version}")


def _gate(config: HostConfig, host: Installed | None) -> Check:
    name, armed = "hermes gate", _armed(config)
    if armed and config.get("memory", "provider") != "memoryd":
        said = "compression.checkpoint_required is true and memoryd is not active: every turn that needs a compaction fails"
        return Check(name, "fail", said, f"{_REINSTALL}, or set compression.checkpoint_required to false")
    if host is not None and not host.checkpoints:
        said = f"Hermes {host.version} has no checkpoint contract: transcripts are archived, but a failure cannot stop a compaction"
        return Check(name, "fail" if armed else "warn", said, "a Hermes with checkpoint contract v2")
    if not armed:
        said = "not armed: transcripts are archived, and a compaction goes on where that fails"
        return Check(name, "skip", said, f"{_REINSTALL} --gate")
    if host is None:
        return Check(name, "warn", "armed; no Hermes is installed beside this memoryd, so whether it honours that is unknown")
    return Check(name, "ok", f"armed, and Hermes {host.version} honours it")


def _authorities(config: HostConfig) -> Iterator[Check]:
    """What else compacts: each of these does it without asking for a checkpoint."""
    armed = _armed(config)
    for key in ("codex_responses_native", "micro_compact"):
        if truthy(config.get("compression", key)):
            said = "has no effect while the gate is armed" if armed else "compacts without an archive"
            yield Check("hermes compaction", "warn", f"compression.{key} is on: it {said}", f"set compression.{key} to false")
    if _app_server(config):
        said = "Hermes does not start while the gate is armed" if armed else "Codex compacts by itself, without an archive"
        state: CheckState = "fail" if armed else "warn"
        yield Check("hermes compaction", state, f"codex_app_server runs the turns: {said}", "set model.openai_runtime to auto")


def _app_server(config: HostConfig) -> bool:
    return any(str(config.get("model", key)).strip().lower() == "codex_app_server" for key in ("openai_runtime", "api_mode"))


# -- the store ---------------------------------------------------------------------------------------------------------------


def _store(home: Path, settings: Settings) -> Check:
    name, remedy = "hermes store", f"memoryd --home {home} doctor says more"
    if not home.is_dir():
        return Check(name, "skip", f"{home} is made by the first session")
    try:
        _try_disk(home)
        with _opened(home, settings) as memory:
            found = memory.status()
    except OSError as error:
        return Check(name, "fail", f"{home}: {error.strerror}", "make room, or make it writable")
    except MemorydError as error:
        return Check(name, "fail", str(error), remedy)
    notes = "; ".join(note for note in (*found.notes, found.gate.warning) if note)
    if found.state in ("ok", "off"):
        return Check(name, "ok", f"{found.directory}: {found.state}" + (f"; {notes}" if notes else ""))
    broken = [part.last_error for part in (found.log, *found.backends) if part is not None and part.last_error]
    said = f"{found.directory}: {found.state}" + "".join(f"; {reason}" for reason in (*broken, notes) if reason)
    return Check(name, "fail" if found.state == "broken" else "warn", said, remedy)


def _try_disk(home: Path) -> None:
    """Write a block there, for good, and take it away again."""
    with tempfile.TemporaryFile(dir=home) as file:
        file.write(b"memoryd" * 10_000)
        file.flush()
        os.fsync(file.fileno())


def _opened(home: Path, settings: Settings) -> Memory:
    from memoryd.blocking import Memory  # an event loop and a database, for the checks that need them

    # the local parts only: a remote backend has no say in a gate, and its secrets belong to the host
    return Memory(home, config=without_remotes(store_config(home, settings, {})))


# -- the gate ----------------------------------------------------------------------------------------------------------------


def gate_obstacle(home: Path, settings: Settings, host: Installed | None, config: HostConfig) -> str:
    """Why the gate would not hold in ``home``; empty where it would.  A transcript of two lines is archived for real and read back."""
    if host is None:
        return "no Hermes is installed beside this memoryd, so the gate cannot be tried: run it from the environment of Hermes"
    if not host.checkpoints:
        return f"Hermes {host.version} has no checkpoint contract, so it would go on compacting where the archive fails"
    if _app_server(config):
        return "codex_app_server runs the turns, and Hermes does not start with it and the gate; set model.openai_runtime to auto"
    try:
        with _opened(store_home(home, settings), settings) as memory, scope(user="memoryd", session="gate-probe"):
            receipt = memory.checkpoint(_PROBE, host="hermes", trigger="probe")
            whole = receipt.verdict == "archived" and len(memory.restore(receipt.id).rows) == len(_PROBE)
    except (MemorydError, OSError) as error:
        return f"a checkpoint was tried and failed: {error}"
    return "" if whole else f"a checkpoint was tried and not archived ({receipt.verdict})"
