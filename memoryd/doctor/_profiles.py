"""Which profiles a home has."""

from __future__ import annotations

import json
from pathlib import Path

from memoryd.core import profile_folder

__all__ = ["profile_names"]


def profile_names(home: Path) -> tuple[str, ...]:
    """The names of all profiles of ``home``, in order; a directory that does not say its name is left out."""
    found = []
    for identity in (home / "profiles").glob("*/profile.json"):
        try:
            name = json.loads(identity.read_bytes())["name"]
        except (OSError, ValueError, TypeError, KeyError):
            continue
        if isinstance(name, str) and profile_folder(name) == identity.parent.name:
            found.append(name)
    return tuple(sorted(found))
