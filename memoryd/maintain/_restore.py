"""Restore: a backup becomes a profile; what was forgotten since then stays forgotten, and what was there is kept aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from memoryd.core import Config, Value, check_name
from memoryd.errors import MemorydError, StoreCorrupt
from memoryd.maintain._bundle import Manifest, extract
from memoryd.maintain._forgets import apply_forgets, read_forgets
from memoryd.maintain._identity import become, renew_epoch
from memoryd.maintain._place import beside, carry_over, put, take_second
from memoryd.maintain._profiles import fallback_of, is_there
from memoryd.maintain._rekey import renew_key
from memoryd.maintain._settle import settle
from memoryd.maintain._staging import aside, staging
from memoryd.runtime import note_backup
from memoryd.store import (
    ProfileStore,
    alone,
    check_store,
    open_profile,
    os_errors,
    private_directory,
    profile_directory,
)

__all__ = ["RestoredProfile", "restore"]

Told = Callable[[int, int], None]


@attrs.frozen(slots=True, eq=False, repr=False)
class RestoredProfile(Value):
    """A profile that was restored up to event ``events``.  ``forgets`` of after the backup were done again; ``kept`` is where the
    profile is that was there before, empty where there was none."""

    profile: str
    directory: str
    backup_of: str
    created: str
    events: int
    forgets: int
    kept: str
    warnings: tuple[str, ...] = ()


def restore(
    home: Path, source: Path, manifest: Manifest, config: Config, profile: str | None = None,
    on_progress: Told = lambda done, total: None,
) -> RestoredProfile:  # fmt: skip
    """Make the backup at ``source`` the profile ``profile`` (default: the one it is of, as ``manifest`` says).

    Everything is checked, and forgotten again, before the profile appears in one step.  Under another name it becomes a profile of its
    own: another instance and another key, so that it never delivers as the first one.  Raises :class:`StoreLocked` where the profile
    is in use, :class:`StoreCorrupt` for a damaged backup, ``StoreTooNew``; nothing was changed then.
    """
    name = check_name("profile", manifest.name if profile is None else profile)
    with staging(home.absolute()) as stage, _replaced(home, name) as old:
        draft = profile_directory(stage, name)
        private_directory(draft)
        extract(source, draft, on_progress)
        _check(source, draft)
        if name != manifest.name:
            become(draft, name)
        renew_epoch(draft / "log.db")
        warnings: list[str] = []
        known = [one for one in (old, _original(home, manifest, name)) if one is not None]
        done = sum(_forget_again(stage, name, manifest, one, warnings) for one in known)
        second = take_second(draft, stage, name)
        warnings += settle(stage, name, config, second)
        if name != manifest.name:
            renew_key(stage, name, second)
        kept = _place(home, name, draft, source)
        warnings += _put_second(second, config, name)
    return RestoredProfile(
        name, str(profile_directory(home, name)), manifest.name, manifest.created, manifest.head, done, str(kept or ""), tuple(warnings)
    )


@contextmanager
def _replaced(home: Path, name: str) -> Iterator[ProfileStore | None]:
    """The profile that is there now, out of use; None where there is none, or where it is no profile any more."""
    directory = profile_directory(home, name).absolute()
    if not is_there(home, name) and not directory.is_dir():
        yield None
        return
    with alone(directory):
        try:
            there = open_profile(home, name) if (directory / "profile.json").exists() else None
        except MemorydError:
            there = None
        yield there


def _check(source: Path, draft: Path) -> None:
    for path in sorted(draft.glob("*.db")):
        problem = check_store(path)
        if problem:
            raise StoreCorrupt(f"{source}: {path.name} in it is damaged ({problem}); nothing was changed", path=str(source))


def _original(home: Path, manifest: Manifest, name: str) -> ProfileStore | None:
    """The profile that the backup is of, where another one is made of it: what was forgotten there is not brought back here."""
    if name == manifest.name or not is_there(home, manifest.name):
        return None
    found = open_profile(home, manifest.name)
    return found if found.instance == manifest.instance else None


def _forget_again(stage: Path, name: str, manifest: Manifest, knows: ProfileStore, warnings: list[str]) -> int:
    forgets, problems = read_forgets(knows, stage)
    warnings += [f"what was forgotten after the backup may be back: {problem}" for problem in problems]
    return apply_forgets(open_profile(stage, name), forgets, manifest.epoch)


def _place(home: Path, name: str, draft: Path, source: Path) -> Path | None:
    """Put the draft where the profile belongs; where the one before is now.  A later forget names the backup that it came from."""
    directory = profile_directory(home, name).absolute()
    carry_over(directory, draft)
    note_backup(draft, source.resolve())
    kept = aside(directory) if directory.exists() else None
    put(draft, directory, [(directory, kept)] if kept is not None else [])
    return kept


def _put_second(second: Path | None, config: Config, name: str) -> tuple[str, ...]:
    if second is None:
        return ()
    target = fallback_of(config, name)
    if target is None:
        return ("the backup has a second archive, which was not restored: gate.fallback_dir names no place for it",)
    if target.exists():
        return (f"the backup has a second archive, which was not restored: {target} is there already",)
    with os_errors(target):
        beside(second / target.name, target).rename(target)
    return ()
