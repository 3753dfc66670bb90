"""Where exports and backups of a profile were written: a forget names them, because it cannot reach into them."""

from __future__ import annotations

import json
from pathlib import Path

from memoryd.store import write_private

__all__ = ["known_backups", "known_exports", "note_backup", "note_export"]

_EXPORTS, _BACKUPS = "exports.json", "backups.json"


def note_export(directory: Path, target: Path) -> None:
    """Remember ``target``, an absolute path.  ``directory`` is the profile's."""
    _note(directory / _EXPORTS, target)


def known_exports(directory: Path) -> list[Path]:
    """The exports that are still where they were written."""
    return _known(directory / _EXPORTS)


def note_backup(directory: Path, target: Path) -> None:
    """Remember ``target``, an absolute path.  ``directory`` is the profile's."""
    _note(directory / _BACKUPS, target)


def known_backups(directory: Path) -> list[Path]:
    """The backups that are still where they were written, and the copies that migrations, repairs and restores left."""
    beside = [*directory.glob("*.backup"), *directory.glob("quarantine/*"), *directory.parent.glob(f"{directory.name}.before-*")]
    return [*_known(directory / _BACKUPS), *sorted(beside)]


def _note(record: Path, target: Path) -> None:
    known = {*_known(record), target}
    write_private(record, json.dumps(sorted(map(str, known))).encode("ascii"))


def _known(record: Path) -> list[Path]:
    try:
        found = json.loads(record.read_bytes())
    except (OSError, ValueError):
        return []
    return [path for path in map(Path, found) if path.is_file()]
