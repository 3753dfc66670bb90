"""From the staging place to where a profile belongs."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from memoryd.core import profile_folder
from memoryd.store import fsync_directory, move_all, os_errors, private_directory

__all__ = ["beside", "carry_over", "put", "take_second"]

CONFIGURATION, WRITTEN = "memoryd.toml", ("exports.json", "backups.json")


def carry_over(directory: Path, draft: Path, *, configuration: bool = True) -> None:
    """What is of this machine, and no part of a snapshot: where exports and backups were written, and the configuration."""
    for name in (*WRITTEN, *((CONFIGURATION,) if configuration else ())):
        if (directory / name).is_file():
            with os_errors(directory / name):
                shutil.copyfile(directory / name, draft / name)
                (draft / name).chmod(0o600)


def put(draft: Path, directory: Path, before: Sequence[tuple[Path, Path]] = (), after: Sequence[tuple[Path, Path]] = ()) -> None:
    """``draft`` becomes ``directory``, in one step with the renames ``before`` and ``after`` it."""
    for path in (*draft.iterdir(), draft):
        if path.is_dir():
            fsync_directory(path)
    private_directory(directory.parent)
    move_all(directory.parent, [*before, (draft, directory), *after])


def take_second(draft: Path, stage: Path, name: str) -> Path | None:
    """The second archive of the draft, put into a place of its own below ``stage``: a directory as ``gate.fallback_dir`` names one."""
    if not (draft / "second.db").exists():
        return None
    directory = stage / "second" / profile_folder(name)
    private_directory(directory)
    (draft / "second.db").rename(directory / "archive.db")
    return stage / "second"


def beside(source: Path, target: Path) -> Path:
    """A copy of the directory ``source`` beside ``target``, maybe on another disk, so that one rename puts it there."""
    fresh = target.with_name(f"{target.name}.fresh-{secrets.token_hex(4)}")
    private_directory(fresh)
    with os_errors(fresh):
        for path in source.iterdir():
            shutil.copyfile(path, fresh / path.name)
            (fresh / path.name).chmod(0o600)
    fsync_directory(fresh)
    return fresh
