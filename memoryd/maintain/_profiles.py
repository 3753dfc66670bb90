"""The profiles of a home: list, create, rename, delete."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

import attrs

from memoryd.core import Config, Value, profile_folder
from memoryd.errors import InvalidInput, MemorydError
from memoryd.maintain._staging import DISCARDED, STAGING, discard, sweep
from memoryd.store import (
    ProfileStore,
    alone,
    finish_moves,
    move_all,
    open_profile,
    profile_directory,
    read_identity,
    write_identity,
)

__all__ = [
    "Profile", "absent", "create_profile", "delete_profile", "existing", "fallback_of", "is_there", "list_profiles", "profile_names",
    "rename_profile",
]  # fmt: skip

_WAS = "profile.json.was"


@attrs.frozen(slots=True, eq=False, repr=False)
class Profile(Value):
    """One profile.  ``bytes`` of all its files; ``problem`` says why it cannot be used, and ``name`` is then its folder's."""

    name: str
    directory: Path
    instance: str = ""
    bytes: int = 0
    problem: str = ""


def profile_names(home: Path) -> list[str]:
    """The names of the profiles below ``home`` that can be told, in order.  Nothing is created."""
    return sorted(found.name for path in _directories(home) if not (found := _look(path)).problem)


def list_profiles(home: Path) -> list[Profile]:
    """Every profile below ``home``, by name; those whose name cannot be read come last."""
    found = [_measured(path) for path in _directories(home)]
    return sorted(found, key=lambda profile: (bool(profile.problem), profile.name))


def _directories(home: Path) -> list[Path]:
    root = home / "profiles"
    if not root.is_dir():
        return []
    with suppress(MemorydError):  # a home that cannot be written is listed all the same
        finish_moves(root)
    return [path for path in root.iterdir() if len(path.name) == 26 and path.name.isalnum() and path.is_dir()]


def _look(directory: Path) -> Profile:
    try:
        name, instance = read_identity(directory / "profile.json")
    except MemorydError as error:
        return Profile(directory.name, directory, problem=str(error))
    if profile_folder(name) != directory.name:
        problem = f"{directory} says that it is {name!r}, whose folder is {profile_folder(name)}; rename the folder back"
        return Profile(directory.name, directory, instance, problem=problem)
    return Profile(name, directory, instance)


def _measured(directory: Path) -> Profile:
    return attrs.evolve(_look(directory), bytes=sum(map(_size, directory.rglob("*"))))


def _size(path: Path) -> int:
    """0 for what is no file, or is gone by now."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if S_ISREG(found.st_mode) else 0


def is_there(home: Path, name: str) -> bool:
    """Whether there is a profile ``name``; an interrupted move of it is finished first."""
    directory = profile_directory(home, name).absolute()
    if directory.parent.is_dir():
        finish_moves(directory.parent)
    return (directory / "profile.json").exists()


def existing(home: Path, name: str) -> ProfileStore:
    """The profile ``name``, which is not created; raises :class:`InvalidInput` where there is none."""
    if not is_there(home, name):
        raise InvalidInput("profile", f"there is no profile {name!r}; `memoryd profiles list` shows those there are")
    for parent, prefix in ((home, STAGING), (home / "profiles", DISCARDED)):
        sweep(parent, prefix)  # what killed processes left
    return open_profile(home, name)


def absent(home: Path, name: str) -> Path:
    """Where the profile ``name`` would be; raises :class:`InvalidInput` where there is one."""
    if is_there(home, name):
        raise InvalidInput("profile", f"there is a profile {name!r} already")
    return profile_directory(home, name).absolute()


def create_profile(home: Path, name: str) -> Profile:
    """A new, empty profile."""
    absent(home, name)
    return _measured(open_profile(home, name).directory)


def rename_profile(home: Path, old: str, new: str, config: Config) -> Profile:
    """Give the profile another name; everything in it stays as it is, and a crash leaves the one or the other.

    Raises :class:`InvalidInput` for names that are not there, or taken, and :class:`StoreLocked` where the profile is in use.
    """
    profile, target = existing(home, old), absent(home, new)
    directory, draft = profile.directory, profile.directory / "renamed"
    with alone(directory):
        (directory / _WAS).unlink(missing_ok=True)
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        write_identity(draft, new, profile.instance)
        identity = directory / "profile.json"
        around = [(path, _renamed(path, directory, target)) for path in _kept_of(directory)]
        second = fallback_of(config, old)
        if second is not None:
            around += [(path, _renamed(path, second, target)) for path in (second, *_kept_of(second)) if path.is_dir()]
        named = [(identity, directory / _WAS), (draft / "profile.json", identity)]
        move_all(directory.parent, [*named, *around, (directory, target)])
        (target / _WAS).unlink(missing_ok=True)
        with suppress(OSError):
            (target / "renamed").rmdir()
    return _measured(target)


def _kept_of(directory: Path) -> list[Path]:
    """What restores and new keys have put aside of a profile, or of its second archive."""
    return sorted(directory.parent.glob(f"{directory.name}.before-*"))


def _renamed(path: Path, old: Path, new: Path) -> Path:
    """``path``, whose name begins with that of ``old``, named after ``new``."""
    return path.with_name(new.name + path.name.removeprefix(old.name))


def fallback_of(config: Config, name: str) -> Path | None:
    """Where the second archive of the profile is, as it is configured."""
    return Path(config.gate.fallback_dir).expanduser().absolute() / profile_folder(name) if config.gate.fallback_dir else None


def delete_profile(home: Path, name: str, config: Config) -> int:
    """Remove the profile with all that belongs to it, its second archive too; the bytes that were freed.

    It goes in one step: its name is free, and what a crash leaves of its files is removed by the next command on profiles.
    """
    profile = existing(home, name)
    if profile.directory.is_symlink():
        raise InvalidInput("profile", f"{profile.directory} is a link: remove it and what it leads to yourself")
    size = _measured(profile.directory).bytes
    second = fallback_of(config, name)
    gone = [profile.directory, *_kept_of(profile.directory)]
    elsewhere = [path for path in (second, *_kept_of(second)) if path.is_dir()] if second is not None else []
    with alone(profile.directory):
        move_all(profile.directory.parent, [(path, discard(path)) for path in (*elsewhere, *gone)])
    for parent in {path.parent for path in (*elsewhere, *gone)}:
        sweep(parent, DISCARDED)
    return size
