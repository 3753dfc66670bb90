"""A copy of a profile as it is at one instant, taken while anybody writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import attrs

from memoryd.core import Config, Value
from memoryd.errors import StoreCorrupt
from memoryd.journal import Journal, Limits
from memoryd.maintain._identity import read_log_place
from memoryd.maintain._profiles import fallback_of
from memoryd.store import ProfileStore, check_not_lost, snapshot, write_private

__all__ = ["Snapshot", "take_snapshot"]

Told = Callable[[int, int], None]
SMALL = ("profile.json", "profile.key", "gate.json", "gate.receipts.jsonl")


@attrs.frozen(slots=True, eq=False, repr=False)
class Snapshot(Value):
    """``head`` is the last event, of ``epoch``; ``warnings`` say what could not be copied and is made anew."""

    epoch: str
    head: int
    warnings: tuple[str, ...]


def take_snapshot(profile: ProfileStore, config: Config, into: Path, told: Told) -> Snapshot:
    """Copy the stores of ``profile``, and what belongs to them, into the directory ``into``; each copy is checked in full.

    memory.db comes before log.db, so that the log has every event that the projection knows, and archive.db after it, so that what the
    log calls erased is erased there.  Raises :class:`~memoryd.errors.StoreError`.
    """
    warnings: list[str] = []
    copier = _Copier(profile, into, told)
    log = profile.directory / "log.db"
    for path in (log, profile.directory / "archive.db"):
        check_not_lost(path)
    journal = Journal(profile, Limits()) if log.exists() else None
    try:
        if journal is not None:
            journal.ingest_spool()
        try:
            copier.store("memory.db")
        except StoreCorrupt as error:
            warnings.append(f"left out, as it is made anew from the log: {error}")
        copier.store("log.db")
        copier.store("archive.db")
    finally:
        if journal is not None:
            journal.close()
    second = fallback_of(config, profile.name)
    if second is not None:
        copier.store("archive.db", second, "second.db")
    for name in SMALL:
        if (profile.directory / name).exists():
            write_private(into / name, (profile.directory / name).read_bytes())
    return _told(into, tuple(warnings))


def _told(into: Path, warnings: tuple[str, ...]) -> Snapshot:
    epoch, head = read_log_place(into / "log.db")
    return Snapshot(epoch, head, warnings)


@attrs.frozen(slots=True, eq=False, repr=False)
class _Copier:
    profile: ProfileStore
    into: Path
    told: Told

    def store(self, name: str, directory: Path | None = None, target: str = "") -> None:
        source = (directory or self.profile.directory) / name
        if not os.path.lexists(source):
            return
        key = self.profile.directory / "profile.key"
        snapshot(source, self.into / (target or name), mode_of=key, on_progress=self.told)
