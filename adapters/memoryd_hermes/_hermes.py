"""The names of Hermes that the provider uses.  Some exist in newer hosts only, and none where there is no host: each has a stand-in."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

__all__ = [
    "HAS_CHECKPOINTS", "ProviderBase", "RecallStatus", "SecretUnreadable", "hermes_home", "in_gateway", "is_trivial", "read_secret",
    "working_directory",
]  # fmt: skip

_WORDS = "yes|no|ok|okay|sure|thanks|thank you|y|n|hi|hey|hello|continue|go on|done|next|cool|great"
_GREETING = re.compile(rf"({_WORDS})[\W_]*\Z", re.IGNORECASE)


class SecretUnreadable(Exception):
    """The host does not say what a secret is here: it serves several profiles, and none is in scope."""


def _name_of(module: str, name: str, otherwise: Any) -> Any:
    try:
        return getattr(importlib.import_module(module), name, otherwise)
    except ImportError:
        return otherwise


@attrs.frozen(slots=True)
class _RecallStatus:
    provider_label: str
    count: int
    glyph: str = "\N{BRAIN}"


def _is_trivial(text: str | None) -> bool:
    said = (text or "").strip()
    return not said or said.startswith("/") or _GREETING.match(said) is not None


ProviderBase: Any = _name_of("agent.memory_provider", "MemoryProvider", object)
HAS_CHECKPOINTS = bool(_name_of("agent.memory_provider", "PRE_COMPRESS_CHECKPOINT_API_VERSION", False))
RecallStatus: Any = _name_of("agent.memory_provider", "RecallStatus", _RecallStatus)
is_trivial: Callable[[str | None], bool] = _name_of("agent.memory_provider", "is_trivial_prompt", _is_trivial)


def hermes_home() -> Path:
    """The home of the calling context.  Only for a provider that was not initialized yet: its initialize is told the home."""
    ask = _name_of("hermes_constants", "get_hermes_home", None)
    return Path(ask()) if ask is not None else Path(os.environ.get("HERMES_HOME") or Path.home() / ".hermes")


def read_secret(name: str) -> str:
    """A secret of the profile in whose context this is called; empty where it has none.  Raises :class:`SecretUnreadable`."""
    ask = _name_of("agent.secret_scope", "get_secret", os.environ.get)
    try:
        return (ask(name) or "").strip()
    except RuntimeError as error:
        raise SecretUnreadable(f"the host does not give {name} here: no profile is in scope") from error


def working_directory() -> str:
    """Where the agent works, as the host says; empty where it does not.  Never the process's own directory."""
    ask = _name_of("agent.runtime_cwd", "resolve_agent_cwd", None)
    try:
        return "" if ask is None else str(ask())
    except OSError:  # the directory is gone
        return ""


def in_gateway() -> bool:
    """Whether this process is the host's gateway, where agents of many people live."""
    return bool(os.environ.get("_HERMES_GATEWAY"))
