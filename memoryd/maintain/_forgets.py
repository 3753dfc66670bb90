"""Forgets outlive a restore: the tombstones of the profile that is replaced, done again in the one that replaces it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import attrs

from memoryd.checkpoint import Archive, ErasedMark
from memoryd.core import Erased, Event, Forget, Turn, Value
from memoryd.errors import MemorydError
from memoryd.journal import ErasePlan, Intake, Journal, Limits
from memoryd.maintain._salvage import salvaged_log
from memoryd.runtime import now_micros
from memoryd.store import ProfileStore

__all__ = ["Forgets", "apply_forgets", "read_forgets"]

T = TypeVar("T")


@attrs.frozen(slots=True, eq=False, repr=False)
class Forgets(Value):
    """``events``: tombstones, each with the ids of what it means.  ``marks``: what stays erased in the archive."""

    events: tuple[tuple[Forget, tuple[bytes, ...]], ...] = ()
    marks: tuple[ErasedMark, ...] = ()
    key: bytes = attrs.field(default=b"", repr=False)


def read_forgets(profile: ProfileStore, scratch: Path) -> tuple[Forgets, tuple[str, ...]]:
    """Every forget that ``profile`` knows, as far as it can be read, and what could not be.  ``scratch`` is an own directory."""
    problems: list[str] = []

    def attempt(read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except MemorydError as error:
            problems.append(str(error))
            return otherwise

    events = attempt(lambda: _events_of(profile, scratch), ())
    marks = attempt(lambda: _marks_of(profile), ())
    return Forgets(events, marks, profile.key), tuple(problems)


def _events_of(profile: ProfileStore, scratch: Path) -> tuple[tuple[Forget, tuple[bytes, ...]], ...]:
    if not (profile.directory / "log.db").exists():
        return ()
    try:
        return _read_events(profile)
    except MemorydError:
        return _read_events(salvaged_log(profile, scratch))


def _read_events(profile: ProfileStore) -> tuple[tuple[Forget, tuple[bytes, ...]], ...]:
    with opened(profile) as journal:
        forgets = [entry.event for entry in journal.forgets()]
        return tuple((event, journal.ids_of(event.targets)) for event in forgets if isinstance(event, Forget))


def _marks_of(profile: ProfileStore) -> tuple[ErasedMark, ...]:
    if not (profile.directory / "archive.db").exists():
        return ()
    with Archive.open(profile) as archive:
        return tuple(archive.erased_marks())


@contextmanager
def opened(profile: ProfileStore) -> Iterator[Journal]:
    """The log of a profile that nobody else has open."""
    journal = Journal(profile, Limits(free_floor=0))
    try:
        yield journal
    finally:
        journal.close()


def apply_forgets(profile: ProfileStore, forgets: Forgets) -> int:
    """Begin those forgets that ``profile`` does not have yet, and erase the archive; how many those were."""
    done = 0
    if forgets.events and (profile.directory / "log.db").exists():
        with opened(profile) as journal:
            intake = Intake(journal)
            done = sum(_forget(profile, journal, intake, event, targets) for event, targets in forgets.events)
            intake.close()
    if forgets.marks and forgets.key == profile.key and (profile.directory / "archive.db").exists():
        with Archive.open(profile) as archive:
            archive.erase_marked(forgets.marks)
    return done


def _forget(profile: ProfileStore, journal: Journal, intake: Intake, event: Forget, targets: Sequence[bytes]) -> bool:
    seqs = intake.seqs_of(targets)
    live = [entry.event for seq in seqs for entry in journal.read(seq - 1, 1) if not isinstance(entry.event, Erased)]
    here = attrs.evolve(event, targets=seqs)
    return intake.forget(here, _plan(profile, here, live))


def _plan(profile: ProfileStore, event: Forget, live: Sequence[Event]) -> ErasePlan:
    turns = [turn for turn in live if isinstance(turn, Turn)]
    said: tuple[tuple[str, tuple[bytes, ...]], ...] = ()
    if turns and (profile.directory / "archive.db").exists():
        with Archive.open(profile) as archive:
            said = tuple((turn.scope.session or "", archive.identities_of_turn(turn.user, turn.assistant)) for turn in turns)
    return ErasePlan(event.scope.user or "", said, event.sessions, until=now_micros())
