"""House-keeping children: the barrier, what is held, pending forgets, the size of the WAL."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import trio

from memoryd.errors import BarrierFailed, StoreError
from memoryd.journal import Journal
from memoryd.runtime._forget import Forgetting
from memoryd.runtime._kernel import Kernel
from memoryd.runtime._limits import WARN_AT, quota_share
from memoryd.store import Worker, fold_back, reclaim, wal_size

__all__ = ["Barrier", "HeldRetry", "Maintenance"]

_RETRY_BARRIER = 1.0
_MOVING = 0.05  # seconds for what is held, before the barrier has its turn
_IDLE = 2.0
_RESUME = 30.0
_COLLECT = 3600.0
_RECLAIM = 30.0
_SLICES = 64  # write transactions of some milliseconds each: 16 MiB of a file at a time
STORES = ("log.db", "memory.db", "archive.db")


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
            if await self._kernel.sync_worker.run(self._move):
                self._kernel.bells.appended()
                pause = 0.01
            else:
                await trio.sleep(pause)
                pause = min(pause * 2, 0.25)


    def _move(self) -> bool:
        """Move what is held, one short transaction after the other, for a moment; whether some of it went.

        While anything is held, all that comes is: moving has to be faster than coming.
        """
        until, moved = time.monotonic() + _MOVING, False
        while True:
            before, seq = self._journal.held, self._journal.last_seq
            left = self._journal.retry_held()
            if left >= before and self._journal.last_seq == seq:  # more may have come than went
                return moved
            moved = True
            if not left or time.monotonic() > until:
                return True


class Maintenance:
    """Folds write-ahead logs back off the append path, writes pending privacy marks, finishes forgets, ingests what others spooled, and
    gives back to the disk what forgets have freed."""

    def __init__(self, kernel: Kernel, journal: Journal, forgetting: Forgetting) -> None:
        self._kernel = kernel
        self._journal = journal
        self._forgetting = forgetting
        self._stores = [kernel.profile.directory / name for name in STORES]
        self._seen_sizes: tuple[tuple[int, int], ...] = ()
        self._warned = False

    async def run(self) -> None:
        seen = -1
        resumed, collected, reclaimed = -_RESUME, trio.current_time(), trio.current_time()
        while True:
            idle = seen == self._journal.last_seq
            seen = self._journal.last_seq
            await self._contained(self._kernel.sync_worker, partial(self._tidy, idle))
            if trio.current_time() - resumed >= _RESUME:
                resumed = trio.current_time()
                await self._forgetting.resume(self._kernel.config.deadlines.drain)
            if idle and trio.current_time() - collected >= _COLLECT:
                collected = trio.current_time()
                await self._contained(self._kernel.archive_worker, self._collect)
            if idle and trio.current_time() - reclaimed >= _RECLAIM:
                reclaimed = trio.current_time()
                await self._contained(self._kernel.archive_worker, self._reclaim)
            await trio.sleep(_IDLE)

    async def _contained(self, worker: Worker, work: Callable[[], None]) -> None:
        try:
            await worker.run(work)
        except StoreError as error:
            self._kernel.log.info("maintenance.waits", error=type(error).__name__)

    def _tidy(self, idle: bool) -> None:
        self._journal.trim_wal(idle=idle)
        self._kernel.privacy.write_pending()
        self._journal.ingest_spool()
        for path in self._stores[1:]:
            if wal_size(path) > self._kernel.config.log.wal_cap_bytes:
                fold_back(path, self._kernel.config.log.wal_cap_bytes)
        self._warn()

    def _warn(self) -> None:
        """Once for each time that the log comes near its limit."""
        share = quota_share(self._kernel)
        if share >= WARN_AT and not self._warned:
            self._kernel.log.warning("journal.near_quota", percent=int(100 * share))
        self._warned = share >= WARN_AT

    def _collect(self) -> None:
        """Remove from the archive what no checkpoint reaches; unfinished progress of the last day stays."""
        self._kernel.gate.shelf.collect(at=self._kernel.clock())

    def _reclaim(self) -> None:
        """Give free pages back, some at a time; files that did not change since the last time have none."""
        sizes = tuple(_size(path) for path in self._stores)
        if sizes == self._seen_sizes:
            return
        given = [reclaim(path, _SLICES).pages for path in self._stores if path.exists()]
        self._seen_sizes = tuple(_size(path) for path in self._stores) if not any(given) else ()
        if any(given):
            self._kernel.log.info("maintenance.reclaimed", pages=sum(given))


def _size(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns
