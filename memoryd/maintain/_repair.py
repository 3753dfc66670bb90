"""Repair: what is damaged is put aside, never deleted, and what can be read of it goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import attrs

from memoryd.checkpoint import Archive
from memoryd.core import Config, Value
from memoryd.errors import InvalidInput, StoreError, StoreTooNew
from memoryd.maintain._identity import bad_events, mend_log
from memoryd.maintain._lost import Found, find_identity, renew_lost_key
from memoryd.maintain._profiles import fallback_of
from memoryd.maintain._salvage import make_store, salvage_store
from memoryd.maintain._settle import settle
from memoryd.maintain._staging import staging
from memoryd.store import (
    ProfileStore,
    alone,
    check_store,
    finish_moves,
    is_lost,
    move_all,
    note_store,
    private_directory,
    profile_directory,
)

__all__ = ["Finding", "Repaired", "repair"]

Told = Callable[[int, int], None]
STORES = ("log.db", "archive.db", "memory.db")
_SHM = ("", "-wal", "-shm")


@attrs.frozen(slots=True, eq=False, repr=False)
class Finding(Value):
    """One thing that is wrong with ``file``: ``problem``, and the ``remedy`` that was, or with a dry run would be, done.

    ``lost`` where something cannot be had again by it; ``kept`` is where the damaged file is now.
    """

    file: str
    problem: str
    remedy: str
    lost: bool = False
    kept: str = ""


@attrs.frozen(slots=True, eq=False, repr=False)
class Repaired(Value):
    """``findings`` is empty where nothing was wrong."""

    profile: str
    directory: str
    findings: tuple[Finding, ...]
    dry_run: bool

    @property
    def whole(self) -> bool:
        """True where the profile is in order now, and nothing was lost."""
        return not any(finding.lost or self.dry_run for finding in self.findings)


def repair(
    home: Path, name: str, config: Config, *, dry_run: bool = False, rebuild: bool = False, on_progress: Told = lambda done, total: None
) -> Repaired:
    """Find what is wrong with the profile and mend it: rows of a damaged log or archive that can be read are kept, a store that is gone
    is begun anew, memory.db is made anew from the log (also a sound one with ``rebuild``).

    Raises :class:`InvalidInput` where there is no such profile, :class:`StoreLocked` where it is in use (a dry run does not mind),
    :class:`StoreTooNew`, and other ``StoreError`` for what no repair can help, such as a full disk.  It may be repeated.
    """
    directory = profile_directory(home, name).absolute()
    if directory.parent.is_dir():
        finish_moves(directory.parent)
    if not directory.is_dir():
        raise InvalidInput("profile", f"there is no profile {name!r}; `memoryd profiles list` shows those there are")
    second = fallback_of(config, name)
    with ExitStack() as locks:
        for place in (directory, second) if not dry_run else ():
            if place is not None and place.is_dir():
                locks.enter_context(alone(place))
        return _Repair(home, name, directory, second, config, dry_run, rebuild, on_progress).run()


@attrs.define(slots=True, eq=False, repr=False)
class _Repair:
    home: Path
    name: str
    directory: Path
    second: Path | None
    config: Config
    dry_run: bool
    rebuild: bool
    told: Told
    findings: list[Finding] = attrs.field(factory=list)

    def run(self) -> Repaired:
        found = find_identity(self.directory, self.name, dry_run=self.dry_run)
        self.findings += [Finding(*problem) for problem in found.problems]
        paths = [self.directory / name for name in STORES] + ([self.second / "archive.db"] if self.second else [])
        for number, path in enumerate(paths):
            self.told(number, len(paths) + 1)
            self._store(found, path)
        if found.profile is not None and not self.dry_run:
            self._finish(found)
        self._look_into_archives(found)
        self.told(1, 1)
        return Repaired(self.name, str(self.directory), tuple(self.findings), self.dry_run)

    def _finish(self, found: Found) -> None:
        """With stores in order again: a key where there is none, and all of the log in memory.db."""
        profile = found.profile
        assert profile is not None
        if found.key_lost:
            renew_lost_key(profile, self.second)
        if any(finding.file.endswith(".db") for finding in self.findings):
            settle(self.home, self.name, self.config)

    # -- stores --------------------------------------------------------------------------------------------------------------

    def _store(self, found: Found, path: Path) -> None:
        if is_lost(path):
            self._begin_anew(found, path)
            return
        problem = _problem_of(path)
        if path.name == "memory.db" and (problem or (self.rebuild and path.exists())):
            self._put_aside(path, problem or "it was to be rebuilt", "made anew from the log")
        elif problem:
            self._salvage(found, path, problem)

    def _label(self, path: Path) -> str:
        return path.name if path.parent == self.directory else str(path)

    def _beside(self, path: Path) -> Path:
        """Where to make what one rename puts in the place of ``path``: the second archive may be on another disk."""
        return self.home.absolute() if path.parent == self.directory else path.parent.parent

    def _begin_anew(self, found: Found, path: Path) -> None:
        problem = "it is empty" if path.exists() else "it is gone"
        kept = ""
        if not self.dry_run and found.profile is not None:
            with staging(self._beside(path)) as stage:
                made = _made_in(found.profile, stage)
                make_store(made, path.name)
                kept = self._swap(stage / path.name, path)
            note_store(path, anew=True)
        self.findings.append(Finding(self._label(path), problem, "begun anew, empty; a backup has what was in it", lost=True, kept=kept))

    def _salvage(self, found: Found, path: Path, problem: str) -> None:
        if self.dry_run or found.profile is None:
            self.findings.append(Finding(self._label(path), problem, "its readable rows are kept, the file is put aside", lost=True))
            return
        with staging(self._beside(path)) as stage:
            made = _made_in(found.profile, stage)
            rescued = salvage_store(made, path, stage)
            filled = mend_log(stage / path.name) if path.name == "log.db" else 0
            kept = self._swap(stage / path.name, path)
        lost = f", {filled} could not be read" if filled else ""
        gaps = f"; {rescued.gaps} places in the file are damaged" if rescued.gaps else ""
        remedy = f"{rescued.rows} rows were kept{lost}{gaps}"
        self.findings.append(Finding(self._label(path), problem, remedy, lost=bool(filled or rescued.gaps), kept=kept))

    def _put_aside(self, path: Path, problem: str, remedy: str) -> None:
        kept = "" if self.dry_run else self._swap(None, path)
        self.findings.append(Finding(self._label(path), problem, remedy, kept=kept))

    def _swap(self, fresh: Path | None, path: Path) -> str:
        """Put ``path`` aside and ``fresh`` in its place, in one step; where the old one is now."""
        aside = path.parent / "quarantine"
        private_directory(aside)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        kept = aside / f"{path.name}.{stamp}"
        was_there = path.exists()
        steps = [(path.with_name(path.name + end), kept.with_name(kept.name + end)) for end in _SHM]
        move_all(self.directory.parent, [*steps, *([(fresh, path)] if fresh is not None else [])])
        return str(kept) if was_there else ""

    # -- archives ------------------------------------------------------------------------------------------------------------

    def _look_into_archives(self, found: Found) -> None:
        if found.profile is None or found.key_lost:
            return
        for directory in (self.directory, *((self.second,) if self.second is not None else ())):
            path = directory / "archive.db"
            damaged = self.dry_run and any(finding.file == self._label(path) for finding in self.findings)
            if path.exists() and not damaged:
                self._verify(found.profile, directory)

    def _verify(self, profile: ProfileStore, directory: Path) -> None:
        with Archive.open(profile, directory=directory) as archive:
            corrupt = archive.verify(None, self.told).corrupt
            if corrupt and not self.dry_run:
                archive.disown()
        if corrupt:
            names = ", ".join(id[:12] for id in corrupt[:5]) + (", ..." if len(corrupt) > 5 else "")
            remedy = "all others are whole; a backup has them, and the next checkpoint of such a session is stored whole again"
            label = self._label(directory / "archive.db")
            self.findings.append(Finding(label, f"{len(corrupt)} checkpoints are damaged: {names}", remedy, lost=True))


def _made_in(profile: ProfileStore, stage: Path) -> ProfileStore:
    (stage / "profile.key").touch(0o600)  # the mode of what is made here
    return attrs.evolve(profile, directory=stage)


def _problem_of(path: Path) -> str:
    """What is wrong with the store at ``path``; an empty text where nothing is, or it is not there."""
    if not path.exists():
        return ""
    problem = check_store(path)
    if not problem and path.name == "log.db":
        try:
            count = bad_events(path)
        except StoreTooNew:
            raise
        except StoreError as error:
            return str(error)
        problem = f"{count} events have no id or no time" if count else ""
    return problem
