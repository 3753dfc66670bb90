"""A backend in a scope of its own: a profile with a key of its own, a log of its own, and at the end nothing of either."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from memoryd.core import (
    Backend,
    Config,
    Cursor,
    Entry,
    Event,
    MemoryWrite,
    Outcome,
    Scope,
    build_config,
    encode_event,
    new_event_id,
)
from memoryd.evaluate._remains import REMAINS, Remains
from memoryd.runtime import backend_context, build_backend, find_backend, now_micros
from memoryd.store import open_profile

__all__ = ["CALL_SECONDS", "USER", "Stage", "Trial", "Unapplied", "erase_remains"]

USER = "memoryd evaluation"
CALL_SECONDS = 20.0
_OPEN_SECONDS = 60.0  # importing a remote one's packages takes seconds
_ERASE_SECONDS = 60.0
_EPOCH = "evaluation"


@attrs.frozen(slots=True)
class Stage:
    """Where backends are evaluated: ``scratch`` is a home that is removed afterwards, ``home`` the user's, for its plug-ins."""

    scratch: Path
    home: Path
    config: Config


class Trial:
    """One backend, opened by :meth:`opened`.  ``calls`` and ``bytes`` count what it was asked and given."""

    def __init__(self, stage: Stage, name: str, purpose: str = "points", vfs: str | None = None) -> None:
        self._profile = open_profile(stage.scratch, f"{name} {purpose}")
        self._context = backend_context(name, self._profile, stage.config, vfs)
        self._found = find_backend(name, stage.home)
        self.remains = Remains(name, purpose, str(stage.home), stage.config.language, self._context.config)
        self.calls = 0
        self.bytes = 0
        self.backend: Backend = build_backend(self._found, self._context)

    @property
    def directory(self) -> Path:
        return self._profile.directory

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Trial]:
        """The trial with its backend open; what it wrote off the machine is erased before it is closed."""
        try:
            with trio.fail_after(_OPEN_SECONDS):
                await self.backend.open()
            try:
                yield self
            finally:
                with trio.CancelScope(shield=True):
                    await self.erase()
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(CALL_SECONDS):
                await self.backend.aclose()

    async def restart(self) -> None:
        """Close the backend and open a new instance on what it kept."""
        await self.backend.aclose()
        self.backend = build_backend(self._found, self._context)
        await self.backend.open()

    # -- what it is given -------------------------------------------------------------------------------------------------------

    def write(self, key: str, value: str) -> MemoryWrite:
        return MemoryWrite(new_event_id(), Scope(user=USER), now_micros(), key, value)

    def entries(self, events: Sequence[Event]) -> list[Entry]:
        """``events`` at the next places of the log.  What is sent off the machine is noted before, for whoever has to erase it."""
        first = self.remains.seq + 1
        self.remains.note(events)
        if self.backend.info.is_cloud:
            self.remains.save(self.directory)
        return [Entry(Cursor(_EPOCH, first + n), event) for n, event in enumerate(events)]

    async def give(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        """One call of ``apply``."""
        self.bytes += sum(len(encode_event(entry.event)) for entry in entries)
        self.calls += 1
        with trio.fail_after(CALL_SECONDS):
            return await self.backend.apply(entries)

    async def tell(self, *events: Event) -> list[Entry]:
        """Apply ``events`` as the next ones; raises :class:`Unapplied` where an outcome is not *ok*."""
        entries = self.entries(events)
        _all_ok(await self.give(entries))
        return entries

    async def erase(self) -> None:
        """Have the backend erase what is off the machine, in the order of the trial's log; what is in the scratch home goes with it.

        Raises what the backend raises, :class:`Unapplied`, and :class:`trio.TooSlowError`; then the remains stay noted.
        """
        if not self.backend.info.is_cloud or not self.remains.seq:
            return
        events = self.remains.erasing(now_micros())
        entries = [Entry(Cursor(_EPOCH, self.remains.seq + 1 + n), event) for n, event in enumerate(events)]
        with trio.fail_after(_ERASE_SECONDS):
            _all_ok(await self.backend.apply(entries))
        (self.directory / REMAINS).unlink(missing_ok=True)


class Unapplied(Exception):
    """An event that the backend did not take."""


def _all_ok(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.kind != "ok":
            raise Unapplied(f"{outcome.kind} {outcome.reason}".rstrip())


async def erase_remains(scratch: Path, remains: Remains) -> None:
    """Erase what a trial of another process left off the machine."""
    config = build_config({"language": remains.language}, {remains.backend: remains.settings})
    trial = Trial(Stage(scratch, Path(remains.home), config), remains.backend, remains.purpose)
    trial.remains = remains
    async with trial.opened():
        pass
