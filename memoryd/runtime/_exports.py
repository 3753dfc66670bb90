"""Where exports of a profile were written: a forget names them, because it cannot reach into them."""

from __future__ import annotations

import json
from pathlib import Path

from memoryd.store import write_private

__all__ = ["known_exports", "note_export"]

_NAME = "exports.json"


def note_export(directory: Path, target: Path) -> None:
    """Remember ``target``, an absolute path.  ``directory`` is the profile's."""
    known = {*known_exports(directory), target}
    write_private(directory / _NAME, json.dumps(sorted(map(str, known))).encode("ascii"))


def known_exports(directory: Path) -> list[Path]:
    """The exports that are still where they were written."""
    try:
        found = json.loads((directory / _NAME).read_bytes())
    except (OSError, ValueError):
        return []
    return [path for path in map(Path, found) if path.is_file()]
