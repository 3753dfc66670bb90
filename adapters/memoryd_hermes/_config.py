"""The configuration of a profile's store: memoryd's own files and variables, what the user set for Hermes, and the profile's secrets.

A variable wins over the host's settings, those win over files.  Secrets come from the host, for the profile in whose context it asks,
and are handed on as values: a process that serves several profiles has the environment of one of them only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from memoryd.core import Config
from memoryd.settings import Loaded, load_config
from memoryd_hermes._hermes import SecretUnreadable, read_secret
from memoryd_hermes._settings import Settings

__all__ = ["CLOSE_SECONDS", "profile_secrets", "store_config", "without_remotes"]

_LOG = "memoryd.log"  # in the store: the terminal is the host's
CLOSE_SECONDS = 1.6  # of the 2 s that a shutdown may take
PREFETCH_SECONDS = 0.25
STORE_SECONDS = 0.3  # a tool call waits that long for a remote backend; the log has it before
_DEFAULTS = Settings()
_REMOTE = ("honcho", "auto")
_SECRETS = ("HONCHO_API_KEY", "HONCHO_URL", "HONCHO_BASE_URL", "HONCHO_WORKSPACE_ID")


def profile_secrets() -> Mapping[str, str]:
    """What the host's secrets say for backends; to be asked for in the host's own call, where the profile is in scope."""
    try:
        return {name: read_secret(name) for name in _SECRETS}
    except SecretUnreadable:
        return {}


def store_config(store: Path, settings: Settings, secrets: Mapping[str, str]) -> Config:
    """The configuration of the store at ``store``.  Raises :class:`ConfigError`."""
    base = load_config(store, "default")
    second = str(Path(settings.gate_fallback_dir).expanduser()) if settings.gate_fallback_dir else ""
    wanted = {
        "backend": (settings.backend, _DEFAULTS.backend),
        "recall.budget_chars": (settings.recall_chars, _DEFAULTS.recall_chars),
        "gate.fallback_dir": (second, ""),
        "logging.file": (_LOG, _LOG),
    }
    chosen = {key: value for key, (value, default) in wanted.items() if _counts(base, key, value != default)}
    config = load_config(store, "default", chosen).config
    return _with_secrets(_in_time(config), settings, secrets)


def _counts(base: Loaded, key: str, was_set: bool) -> bool:
    """Whether the host's setting of ``key`` is taken."""
    place = base.sources.get(key, "")
    return not place.startswith(("MEMORYD_", "HERMES_")) and (was_set or not place)


def _in_time(config: Config) -> Config:
    limits = config.deadlines
    return attrs.evolve(
        config,
        deadlines=attrs.evolve(
            limits,
            prefetch=min(limits.prefetch, PREFETCH_SECONDS),
            store=min(limits.store, STORE_SECONDS),
            close=min(limits.close, CLOSE_SECONDS),
            exit=min(limits.exit, CLOSE_SECONDS),
        ),
    )


def _with_secrets(config: Config, settings: Settings, secrets: Mapping[str, str]) -> Config:
    """With the profile's address and key of Honcho in place, also where it has none: another profile's are never taken instead."""
    if config.backend not in _REMOTE and "honcho" not in config.mirrors:
        return config
    table = dict(config.backends.get("honcho", {}))
    address = settings.honcho_url or table.get("url") or secrets.get("HONCHO_URL") or secrets.get("HONCHO_BASE_URL") or ""
    table["url"] = address
    if "api_key_env" not in table and "api_key_file" not in table:
        table["api_key"] = secrets.get("HONCHO_API_KEY", "")
    table.setdefault("workspace", secrets.get("HONCHO_WORKSPACE_ID") or "memoryd")
    return attrs.evolve(config, backends={**config.backends, "honcho": table})


def without_remotes(config: Config) -> Config:
    """The same with local memory alone: what is recorded waits in the log for a backend that can be had later."""
    return attrs.evolve(config, backend="local", mirrors=())
