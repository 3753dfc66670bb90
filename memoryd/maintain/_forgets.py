"""Forgets outlive a restore: the tombstones of the profile that is replaced, done again in the one that replaces it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import attrs

from memoryd.checkpoint import Archive, ErasedMark
from memoryd.core import Erased, Event, Forget, Turn, Value
from memoryd.errors import MemorydError
from memoryd.journal import ErasePlan, Intake, Journal, Limits
from memoryd.maintain._identity import read_log_place
from memoryd.maintain._salvage import salvaged_log
from memoryd.runtime import now_micros
from memoryd.store import ProfileStore

__all__ = ["Forgets", "apply_forgets", "read_forgets"]


@attrs.frozen(slots=True, eq=False, repr=False)
class Forgets(Value):
    """``events``: tombstones, each with the ids of what it means (empty ones for those that cannot be read) in the log's ``epoch``.
    ``marks``: what stays erased in the archive.  ``keys`` are those that the profile has and had, the latest first."""

    events: tuple[tuple[Forget, tuple[bytes, ...]], ...] = ()
    epoch: str = ""
    marks: tuple[ErasedMark, ...] = ()
    keys: tuple[bytes, ...] = attrs.field(default=(), repr=False)


def read_forgets(profile: ProfileStore, scratch: Path) -> tuple[Forgets, tuple[str, ...]]:
    """Every forget that ``profile`` knows, as far as it can be read, and what could not be.  ``scratch`` is an own directory."""
    forgets, problems = Forgets(keys=(profile.key, *profile.earlier)), []
    try:
        events, epoch = _events_of(profile, scratch)
        forgets = attrs.evolve(forgets, events=events, epoch=epoch)
    except MemorydError as error:
        problems.append(str(error))
    try:
        forgets = attrs.evolve(forgets, marks=_marks_of(profile))
    except MemorydError as error:
        problems.append(str(error))
    return forgets, tuple(problems)


_Events: TypeAlias = tuple[tuple[Forget, tuple[bytes, ...]], ...]


def _events_of(profile: ProfileStore, scratch: Path) -> tuple[_Events, str]:
    log = profile.directory / "log.db"
    if not log.exists():
        return (), ""
    try:
        return _read_events(profile)
    except MemorydError:
        events, _ = _read_events(salvaged_log(profile, scratch))
    try:
        return events, read_log_place(log)[0]
    except MemorydError:
        return events, ""


def _read_events(profile: ProfileStore) -> tuple[_Events, str]:
    with opened(profile) as journal:
        forgets = [entry.event for entry in journal.forgets()]
        events = tuple((event, _ids(journal, event.targets)) for event in forgets if isinstance(event, Forget))
        return events, journal.epoch


def _ids(journal: Journal, seqs: Sequence[int]) -> tuple[bytes, ...]:
    return tuple(next(iter(journal.ids_of((seq,))), b"") for seq in seqs)


def _marks_of(profile: ProfileStore) -> tuple[ErasedMark, ...]:
    if not (profile.directory / "archive.db").exists():
        return ()
    with Archive.open(profile) as archive:
        return archive.erased_marks()


@contextmanager
def opened(profile: ProfileStore) -> Iterator[Journal]:
    """The log of a profile that nobody else has open."""
    journal = Journal(profile, Limits(free_floor=0))
    try:
        yield journal
    finally:
        journal.close()


def apply_forgets(profile: ProfileStore, forgets: Forgets, epoch: str) -> int:
    """Begin those forgets that ``profile`` does not have yet, and erase the archive; how many those were.

    Those of another profile, which shares no key with this one, mean nothing here.  In a log that had the ``epoch`` of where they come
    from the same place means the same event, also one that could not be read there.
    """
    if not {profile.key, *profile.earlier} & set(forgets.keys):
        return 0
    same = bool(epoch) and epoch == forgets.epoch
    done = 0
    if forgets.events and (profile.directory / "log.db").exists():
        with opened(profile) as journal:
            intake = Intake(journal)
            done = sum(_forget(profile, journal, intake, *one, same=same) for one in forgets.events)
            intake.close()
    if forgets.marks and forgets.keys[0] == profile.key and (profile.directory / "archive.db").exists():
        with Archive.open(profile) as archive:
            archive.erase_marked(forgets.marks)
    return done


def _forget(
    profile: ProfileStore, journal: Journal, intake: Intake, event: Forget, ids: Sequence[bytes], *, same: bool
) -> bool:  # fmt: skip
    unread = {seq for seq, id in zip(event.targets, ids, strict=True) if not id and same and seq <= journal.last_seq}
    seqs = tuple(sorted({*intake.seqs_of([id for id in ids if id]), *unread}))
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
