"""Backup: a profile into one file, while it is in use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import attrs

from memoryd.core import Config, Value
from memoryd.errors import InvalidInput, StoreError
from memoryd.maintain._bundle import extract, write_bundle
from memoryd.maintain._profiles import existing
from memoryd.maintain._snapshot import take_snapshot
from memoryd.maintain._staging import staging
from memoryd.runtime import note_backup
from memoryd.store import fsync_directory, os_errors, private_directory

__all__ = ["BackedUp", "back_up"]

Told = Callable[[int, int], None]
DRAFT = ".memoryd-backup-"


@attrs.frozen(slots=True, eq=False, repr=False)
class BackedUp(Value):
    """A backup that was written and read again: ``events`` is the place of the log's last one, ``bytes`` the size of the file."""

    file: str
    profile: str
    events: int
    bytes: int
    files: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def back_up(home: Path, profile: str, config: Config, target: Path, on_progress: Told = lambda done, total: None) -> BackedUp:
    """Write the profile into the file ``target`` (mode 0600), replaced only by a backup that was read again and compared.

    Any number of processes may write meanwhile: it holds what was accepted up to some instant of the call.  It needs the size of the
    profile twice beside ``target`` while it runs.  Raises :class:`InvalidInput` for a profile that is not there or a ``target`` that is
    no file, and :class:`~memoryd.errors.StoreError`; then ``target`` is as before.
    """
    store = existing(home, profile)
    path = Path(os.path.realpath(target))
    if path.exists() and not path.is_file():
        raise InvalidInput("file", f"{path} is there and is no file")
    if not path.parent.is_dir():
        raise InvalidInput("file", f"there is no directory {path.parent}")
    with os_errors(path), staging(path.parent, DRAFT) as folder:
        parts = folder / "parts"
        private_directory(parts)
        seen = take_snapshot(store, config, parts, on_progress)
        written = folder / "backup"
        with open(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as stream:
            write_bundle(stream, parts, on_progress, name=profile, instance=store.instance, epoch=seen.epoch, head=seen.head)
            stream.flush()
            os.fsync(stream.fileno())
        manifest = extract(written, None, on_progress)
        size = written.stat().st_size
        os.replace(written, path)
        fsync_directory(path.parent)
    warnings = seen.warnings + _noted(store.directory, path)
    return BackedUp(str(path), profile, seen.head, size, tuple(manifest.files), warnings)


def _noted(directory: Path, path: Path) -> tuple[str, ...]:
    try:
        note_backup(directory, path)
    except StoreError as error:
        return (f"it could not be written down that this backup is there, so that a forget will not name it: {error}",)
    return ()
