"""Taking in what a host has kept of its own: each event once, with its time, in order.  Stopped half-way it is just run again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path

import attrs

from memoryd.core import Config, Erased, Event, Scope, Turn, Value, encode_event
from memoryd.errors import InvalidInput
from memoryd.hosts._consent import consent, read_pauses, was_paused
from memoryd.hosts._sources import Source
from memoryd.journal import Intake
from memoryd.runtime import opened_log, turn_key

__all__ = ["TakenIn", "import_history"]

Told = Callable[[int, int], None]
_BATCH, _BATCH_BYTES = 256, 256 << 10


@attrs.frozen(slots=True, eq=False, repr=False)
class TakenIn(Value):
    """``events`` were found, ``added`` of them new here (with a dry run: would be), ``kept_out`` left alone because the user keeps their
    folder or their time out of memory."""

    events: int
    added: int
    kept_out: int = 0


@attrs.frozen(slots=True, eq=False, repr=False)
class _Keyed:
    event: Event
    key: bytes | None


def import_history(
    home: Path, profile: str, config: Config, source: Source, paths: Sequence[Path], *, user: str, dry_run: bool = False,
    on_progress: Told = lambda done, total: None,
) -> TakenIn:  # fmt: skip
    """Take what ``source`` finds in ``paths`` into the log as ``user``'s.  Blocking; memory stays bounded.

    Everything is read once before anything is kept.  Raises :class:`~memoryd.errors.InvalidInput` and the store's errors.
    """
    total = sum(1 for path in paths for _ in source.events(path))
    wanted = _Wanted(config, home, user)
    with opened_log(home, profile, config) as (store, journal), closing(Intake(journal)) as intake:
        found = (_Keyed(event, _key(store.key, event)) for event in wanted.of(_counted(source, paths, total, on_progress)))
        added = 0
        for batch in _batches(found):
            rows = [(one.event, one.key) for one in batch]
            added += intake.count_new(rows) if dry_run else intake.add(rows)
            if not dry_run:
                journal.trim_wal()
        if not dry_run:
            journal.barrier()
    return TakenIn(total, added, wanted.kept_out)


def _counted(source: Source, paths: Sequence[Path], total: int, told: Told) -> Iterator[Event]:
    done = 0
    for path in paths:
        for event in source.events(path):
            yield event
            done += 1
            told(done, total)


def _key(profile_key: bytes, event: Event) -> bytes | None:
    if not isinstance(event, Turn) or event.turn_id is None:
        return None
    return turn_key(profile_key, event.scope, event.turn_id)


def _batches(found: Iterable[_Keyed]) -> Iterator[list[_Keyed]]:
    batch: list[_Keyed] = []
    size = 0
    for one in found:
        batch.append(one)
        size += len(encode_event(one.event))
        if len(batch) >= _BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Wanted:
    """Events under the importing user, without those that are kept out."""

    def __init__(self, config: Config, home: Path, user: str) -> None:
        self._user = user
        self._pauses = read_pauses(home)
        self.kept_out = 0
        # whoever imports asks for it: that sessions are private by default does not count here
        shown = attrs.evolve(config, capture=attrs.evolve(config.capture, private=False))
        self._allowed = lru_cache(1024)(lambda folder: consent(folder, shown, home, environ={}, at=0).allowed)

    def of(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, Erased):
                raise InvalidInput("source", "gives an event that says nothing")
            folder = event.scope.workspace or ""
            if was_paused(self._pauses, event.at) or (folder.startswith("/") and not self._allowed(folder)):
                self.kept_out += 1
                continue
            yield attrs.evolve(event, scope=attrs.evolve(event.scope, user=self._whose(event.scope)))

    def _whose(self, scope: Scope) -> str:
        """What begins with a slash is kept apart, beside the importing user."""
        given = scope.user or ""
        return f"{self._user}{given}" if not given or given.startswith("/") else given
