"""The writer task of a remote backend: at least once with a key, in order, for ever; one owner among the processes of a profile."""

from __future__ import annotations

import random
from collections.abc import Sequence

import attrs
import trio

from memoryd.core import Cursor, Entry, Outcome, RetryPolicy, Value, backoff
from memoryd.errors import BackendAmbiguous, BackendError, BackendPermanent, BackendTransient, StoreError
from memoryd.journal import Journal, Outbox
from memoryd.runtime._kernel import Kernel, Member
from memoryd.runtime._owner import Owner

__all__ = ["Delivery"]

_POLL = 0.5
_CALL_DEADLINE = 60.0  # seconds one apply may take before it counts as ambiguous, or one open before it is tried again


@attrs.frozen(slots=True, eq=False, repr=False)
class _Stop(Value):
    """Delivery stops here for now: ``kind`` and ``reason`` of the event that has to be tried again."""

    kind: str
    reason: str
    retry_after: float | None = None


class Delivery:
    """Sends the log to one backend whose cursor the log keeps."""

    def __init__(self, kernel: Kernel, member: Member, journal: Journal, outbox: Outbox, owner: Owner) -> None:
        self._kernel = kernel
        self._member = member
        self._journal = journal
        self._outbox = outbox
        self._owner = owner
        self._bell = kernel.bells.on_append()
        delivery = kernel.config.delivery
        self._policy = RetryPolicy(first=delivery.backoff_min, cap=delivery.backoff_max)

    async def run(self) -> None:
        """Until cancelled, or until the wake-ups end."""
        while True:
            try:
                stop = await self._open() or await self._turn()
            except StoreError as error:  # the log is locked, or its disk is ill: it keeps what waits
                stop = self._stopped(_Stop("transient", type(error).__name__))
            try:
                await self._pause(stop)
            except trio.EndOfChannel:
                return

    async def _open(self) -> _Stop | None:
        """Open the backend, in every process: those that do not deliver recall from it."""
        if self._member.is_open:
            return None
        try:
            with trio.fail_after(_CALL_DEADLINE):
                await self._member.backend.open()
        except trio.TooSlowError:
            return self._stopped(_Stop("transient", "timeout"))
        except BackendError as error:
            return self._stopped(_from_error(error))
        self._member.is_open = True
        self._member.succeeded(0, self._kernel.clock())
        return None

    async def _turn(self) -> _Stop | bool | None:
        if self._owner.hold():
            return await self._deliver_batch()
        self._member.progress.advance(self._outbox.cursor(self._member.name).seq)
        return None

    async def _pause(self, stop: _Stop | bool | None) -> None:
        if stop is True:
            await trio.lowlevel.checkpoint()
        elif isinstance(stop, _Stop):
            delay = backoff(self._policy, self._member.failures, random.random(), stop.retry_after)
            self._kernel.log.warning("delivery.waits", backend=self._member.name, error=stop.reason, seconds=round(delay, 1))
            await trio.sleep(delay)
        else:
            await self._bell.wait(_POLL)

    async def _deliver_batch(self) -> _Stop | bool | None:
        """One batch: True where there may be more, None where all is sent, a :class:`_Stop` where it has to be tried again."""
        cursor = self._outbox.cursor(self._member.name)
        self._member.progress.advance(cursor.seq)
        limits = self._kernel.config.delivery
        read = self._journal.read
        entries = await self._kernel.read_worker.run(read, cursor.seq, limits.batch_events, limits.batch_bytes, abandon=True)
        if not entries:
            return None
        return await self._deliver(entries)

    async def _deliver(self, entries: Sequence[Entry]) -> _Stop | bool:
        try:
            with trio.fail_after(_CALL_DEADLINE), self._kernel.stages["deliver"].timed():
                outcomes = await self._member.backend.apply(entries)
        except trio.TooSlowError:
            return self._stopped(_Stop("ambiguous", "timeout"))
        except BackendPermanent as error:
            return await self._bisect(entries, error)
        except BackendError as error:
            return self._stopped(_from_error(error))
        return self._settle(entries, outcomes)

    async def _bisect(self, entries: Sequence[Entry], error: BackendPermanent) -> _Stop | bool:
        """A permanent refusal of a batch: find the events it means; each is buried alone and the rest goes on."""
        if len(entries) == 1:
            return self._settle(entries, [Outcome("permanent", type(error.__cause__ or error).__name__)])
        middle = len(entries) // 2
        first = await self._deliver(entries[:middle])
        return first if isinstance(first, _Stop) else await self._deliver(entries[middle:])

    def _settle(self, entries: Sequence[Entry], outcomes: Sequence[Outcome]) -> _Stop | bool:
        """Move the cursor over everything that is settled, in order, up to the first event that is not."""
        settled: Cursor | None = None
        stop: _Stop | None = None
        count = 0
        for entry, outcome in zip(entries, outcomes, strict=True):
            if outcome.kind not in ("ok", "permanent"):
                stop = _Stop(outcome.kind, outcome.reason, outcome.retry_after)
                break
            if outcome.kind == "permanent":
                self._outbox.bury(self._member.name, entry.seq, outcome.reason, self._kernel.clock())
            settled = entry.cursor
            count += 1
        if settled is not None:
            self._outbox.advance(self._member.name, settled)
            self._member.progress.advance(settled.seq)
            self._member.succeeded(count, self._kernel.clock())
        return self._stopped(stop) if stop is not None else True

    def _stopped(self, stop: _Stop) -> _Stop:
        self._member.failed(stop.reason or stop.kind, self._kernel.clock())
        return stop


def _from_error(error: BackendError) -> _Stop:
    name = type(error.__cause__ or error).__name__
    if isinstance(error, BackendTransient):
        return _Stop("transient", name, error.retry_after)
    return _Stop("ambiguous" if isinstance(error, BackendAmbiguous) else "transient", name)
