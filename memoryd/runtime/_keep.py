"""House-keeping children: the barrier, what is held, pending forgets, the size of the WAL."""

from __future__ import annotations

import trio

from memoryd.errors import BarrierFailed, StoreError
from memoryd.journal import Journal
from memoryd.runtime._forget import Forgetting
from memoryd.runtime._kernel import Kernel

__all__ = ["Barrier", "HeldRetry", "Maintenance"]

_RETRY_BARRIER = 1.0
_IDLE = 2.0
_RESUME = 30.0
_COLLECT = 3600.0


class Barrier:
    """Makes what was journaled safe against power loss, ``log.barrier_ms`` after the first event of a batch."""

    def __init__(self, kernel: Kernel, journal: Journal) -> None:
        self._kernel = kernel
        self._journal = journal
        self._bell = kernel.bells.on_append()

    async def run(self) -> None:
        pause = self._kernel.config.log.barrier_ms / 1000
        while True:
            dirty = self._journal.last_seq > self._journal.synced or not self._journal.power_safe
            try:
                if not dirty:
                    await self._bell.wait(60.0)
                    continue
            except trio.EndOfChannel:
                return
            await trio.sleep(pause)
            await self._sync()

    async def _sync(self) -> None:
        try:
            with self._kernel.stages["barrier"].timed():
                await self._kernel.sync_worker.run(self._journal.barrier)
        except BarrierFailed as error:
            self._kernel.log.error("journal.barrier_failed", error=type(error.__cause__ or error).__name__)
            await trio.sleep(_RETRY_BARRIER)


class HeldRetry:
    """Moves held events into the log as soon as its lock is free."""

    def __init__(self, kernel: Kernel, journal: Journal) -> None:
        self._kernel = kernel
        self._journal = journal
        self._bell = kernel.bells.held

    async def run(self) -> None:
        pause = 0.01
        while True:
            try:
                if not self._journal.held:
                    pause = 0.01
                    await self._bell.wait(60.0)
                    continue
            except trio.EndOfChannel:
                return
            before = self._journal.held
            left = await self._kernel.sync_worker.run(self._journal.retry_held)
            if left < before:
                self._kernel.bells.appended()
                pause = 0.01
            else:
                await trio.sleep(pause)
                pause = min(pause * 2, 0.25)


class Maintenance:
    """Folds the WAL back off the append path, writes pending privacy marks, finishes forgets, ingests what others spooled."""

    def __init__(self, kernel: Kernel, journal: Journal, forgetting: Forgetting) -> None:
        self._kernel = kernel
        self._journal = journal
        self._forgetting = forgetting

    async def run(self) -> None:
        seen = -1
        resumed, collected = -_RESUME, trio.current_time()
        while True:
            idle = seen == self._journal.last_seq
            seen = self._journal.last_seq
            try:
                await self._kernel.sync_worker.run(self._tidy, idle)
            except StoreError as error:
                self._kernel.log.info("maintenance.waits", error=type(error).__name__)
            if trio.current_time() - resumed >= _RESUME:
                resumed = trio.current_time()
                await self._forgetting.resume(self._kernel.config.deadlines.drain)
            if idle and trio.current_time() - collected >= _COLLECT:
                collected = trio.current_time()
                await self._collect()
            await trio.sleep(_IDLE)

    async def _collect(self) -> None:
        """Remove from the archive what no checkpoint reaches; unfinished progress of the last day stays."""
        shelf, now = self._kernel.gate.shelf, self._kernel.clock()
        try:
            await self._kernel.archive_worker.run(lambda: shelf.collect(at=now))
        except StoreError as error:
            self._kernel.log.info("maintenance.waits", error=type(error).__name__)

    def _tidy(self, idle: bool) -> None:
        self._journal.trim_wal(idle=idle)
        self._kernel.privacy.write_pending()
        self._journal.ingest_spool()
