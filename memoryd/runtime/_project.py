"""The writer task of a backend that keeps its own cursor (local): exactly once, by any process, nobody waits for an owner."""

from __future__ import annotations

import trio

from memoryd.core import Cursor, RetryPolicy, backoff
from memoryd.errors import BackendError, MemorydError, StoreError
from memoryd.journal import Journal
from memoryd.runtime._kernel import Kernel, Member

__all__ = ["Projection"]

_POLL = 0.5  # seconds between looks for what other processes have appended
_GATHER = 0.004
_GATHER_MAX = 0.2  # a stream of turns is projected in larger, cheaper batches, unless a reader waits
_BATCH = 512
_BATCH_BYTES = 1 << 20
_RETRY = RetryPolicy(first=0.02, cap=0.5)


class Projection:
    """Brings one self-positioned backend up to the log, again and again."""

    def __init__(self, kernel: Kernel, member: Member, journal: Journal) -> None:
        self._kernel = kernel
        self._member = member
        self._journal = journal
        self._bell = kernel.bells.on_append()
        self._cursor: Cursor | None = None

    async def run(self) -> None:
        """Until cancelled, or until the wake-ups end."""
        while True:
            try:
                while await self._step():
                    pass
                woken = await self._bell.wait(_POLL)
            except trio.EndOfChannel:
                return
            except (BackendError, StoreError) as error:
                await self._after_failure(error)
                continue
            if woken:
                await self._gather()

    async def _gather(self) -> None:
        """Wait until appends pause, a reader asks, or long enough."""
        until = trio.current_time() + _GATHER_MAX
        seen = -1
        while seen != self._journal.last_seq and trio.current_time() < until:
            seen = self._journal.last_seq
            if await self._member.progress.gather(_GATHER):
                return

    async def _after_failure(self, error: MemorydError) -> None:
        kind = self._member.stuck(error, self._kernel.clock())
        self._cursor = None
        if self._member.failures in (1, 10) or self._member.failures % 100 == 0:
            self._kernel.log.warning("projection.failed", backend=self._member.name, error=kind)
        await trio.sleep(backoff(_RETRY, self._member.failures, 0.5))

    async def _step(self) -> bool:
        """Apply one batch; True where there may be more."""
        if not self._member.is_open:
            await self._member.backend.open()
            self._member.is_open = True
        cursor = await self._position()
        entries = await self._kernel.read_worker.run(self._journal.read, cursor.seq, _BATCH, _BATCH_BYTES, abandon=True)
        if not entries:
            self._member.succeeded(0, self._kernel.clock())
            return False
        with self._kernel.stages["project"].timed():
            outcomes = await self._member.backend.apply(entries)
        done = [outcome.kind in ("ok", "permanent") for outcome in outcomes]
        applied = done.index(False) if False in done else len(done)
        if applied < len(entries):
            self._cursor = None
            if outcomes[applied].kind == "gap":
                self._member.damaged = False  # it was rebuilt meanwhile
                return True
        if applied:
            self._advance(entries[applied - 1].cursor)
            self._member.succeeded(applied, self._kernel.clock())
        return applied == len(entries)

    async def _position(self) -> Cursor:
        if self._cursor is None:
            own = await self._member.backend.position()
            stranger = own is None or own.epoch != self._journal.epoch or own.seq > self._journal.head().seq
            self._advance(Cursor(self._journal.epoch, 0) if stranger or own is None else own)
        assert self._cursor is not None
        return self._cursor

    def _advance(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._member.progress.advance(cursor.seq)
