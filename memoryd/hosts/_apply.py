"""Carries out a plan: every file is written whole or not at all, and what was there before is kept."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

from memoryd.core import Value
from memoryd.errors import ConfigError
from memoryd.hosts._port import Change, Plan
from memoryd.store import replace_file

__all__ = ["Applied", "Done", "apply_plan", "backups_of", "foresee", "write_file"]

_FOLDER = "backups"
_MADE = "made.json"  # the directories that installs made, so that an uninstall removes no others
_KEPT = 5  # backups of one file


@attrs.frozen(slots=True, eq=False, repr=False)
class Done(Value):
    """One change that was carried out: ``action`` is ``create``, ``edit`` or ``remove``; ``backup`` holds what was there before."""

    path: Path
    action: str
    why: str
    backup: Path | None = None


@attrs.frozen(slots=True, eq=False, repr=False)
class Applied(Value):
    """What an install or uninstall did, in order."""

    done: tuple[Done, ...] = ()


def foresee(plan: Plan) -> Applied:
    """What :func:`apply_plan` would do; nothing is written."""
    changes = [Done(change.path, _action(change, change.path.exists()), change.why) for change in plan.changes]
    return Applied((*changes, *(_erasure(folder) for folder in plan.erases)))


def _erasure(folder: Path) -> Done:
    return Done(folder, "remove", "everything that was recorded")


def _action(change: Change, there: bool) -> str:
    return "remove" if change.content is None else "edit" if there else "create"


def apply_plan(plan: Plan, memoryd_home: Path) -> Applied:
    """Carry out every change.  Files outside ``memoryd_home`` that are edited or removed are copied to its ``backups`` before.

    A symbolic link is followed: the file it leads to is edited.  Raises :class:`ConfigError` with the file that could not be written;
    what came before it stands, and the same command goes on from there.
    """
    done = []
    for change in plan.changes:
        try:
            done.append(_applied(change, memoryd_home))
        except OSError as error:
            raise ConfigError(f"{error.filename or change.path}: cannot be changed: {error.strerror}") from error
    for folder in plan.erases:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise ConfigError(f"{error.filename or folder}: cannot be deleted: {error.strerror}") from error
        done.append(_erasure(folder))
    return Applied(tuple(done))


def _applied(change: Change, home: Path) -> Done:
    path = Path(os.path.realpath(change.path))
    before = path.read_bytes() if path.exists() else None
    foreign = before is not None and not path.is_relative_to(os.path.realpath(home))
    backup = _keep(path, before, home) if foreign and before is not None else None
    if change.content is None:
        path.unlink(missing_ok=True)
        _remove_folders(path.parent, home)
    else:
        _make_folders(path.parent, home)
        write_file(path, change.content, change.mode)
    return Done(change.path, _action(change, before is not None), change.why, backup)


def write_file(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace the file as one step.  A symbolic link is followed, and a file that is there keeps its mode.  Raises :class:`OSError`."""
    path = Path(os.path.realpath(path))
    replace_file(path, content, stat.S_IMODE(path.stat().st_mode) if path.exists() else mode)


# -- what was there before ---------------------------------------------------------------------------------------------------


def backups_of(path: Path, memoryd_home: Path) -> Iterator[bytes]:
    """What ``path`` held before each install and uninstall that edited it, the latest first."""
    for copy in reversed(_copies(Path(os.path.realpath(path)), memoryd_home)):
        yield copy.read_bytes()


def _keep(path: Path, before: bytes, home: Path) -> Path:
    folder = home / _FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = folder / f"{_label(path)}.{time.time_ns():020d}"
    replace_file(kept, before)
    for old in _copies(path, home)[:-_KEPT]:
        old.unlink(missing_ok=True)
    return kept


def _copies(path: Path, home: Path) -> list[Path]:
    label = _label(path)
    return sorted(copy for copy in (home / _FOLDER).glob("*") if copy.name.rpartition(".")[0] == label)


def _label(path: Path) -> str:
    return f"{path.name}.{hashlib.blake2b(os.fsencode(path), digest_size=4).hexdigest()}"


# -- directories -------------------------------------------------------------------------------------------------------------


def _make_folders(folder: Path, home: Path) -> None:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700)
    if missing and not folder.is_relative_to(home):
        _write_made(home, _made(home) | {str(one) for one in missing})


def _remove_folders(folder: Path, home: Path) -> None:
    """``folder`` and those around it, as long as they are empty and were made by an install."""
    made = _made(home)
    for one in (folder, *folder.parents):
        if str(one) not in made and not (one.is_relative_to(home) and one != home):
            break
        try:
            one.rmdir()
        except OSError:
            break
        made.discard(str(one))
    if made != _made(home):
        _write_made(home, made)


def _made(home: Path) -> set[str]:
    try:
        return set(json.loads((home / _FOLDER / _MADE).read_text("utf-8")))
    except (OSError, ValueError):
        return set()


def _write_made(home: Path, made: set[str]) -> None:
    folder = home / _FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(folder / _MADE, json.dumps(sorted(made)).encode())
