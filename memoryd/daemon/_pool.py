"""The profiles that are open: opened when asked for, closed when unused, bounded in number, each alone with its faults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import attrs
import trio

from memoryd.errors import DaemonBusy, DaemonUnavailable, MemorydError
from memoryd.log import Log

if TYPE_CHECKING:
    from memoryd.runtime import Runtime

__all__ = ["Opener", "Pool"]

Opener: TypeAlias = "Callable[[Path, str], AbstractAsyncContextManager[Runtime]]"

_WAIT = 5.0  # seconds that a call waits for room where every open profile is in use
_LOOK = 0.05


@attrs.define(slots=True, eq=False, repr=False)
class _Open:
    """One profile: opening until ``settled``, open while ``runtime`` is set, closing until ``gone``."""

    used: float
    runtime: Runtime | None = None
    problem: Exception | None = None
    users: int = 0
    stop: trio.Event = attrs.field(factory=trio.Event)
    settled: trio.Event = attrs.field(factory=trio.Event)
    gone: trio.Event = attrs.field(factory=trio.Event)

    @property
    def is_free(self) -> bool:
        return self.users == 0 and self.runtime is not None

    def close(self) -> None:
        """No new call is given this runtime; it drains and closes in its own task."""
        self.runtime = None
        self.stop.set()


class Pool:
    """Runtimes by home and profile.  :meth:`run` owns their tasks and ends some time after :meth:`end`, when each has drained what is
    quick to drain and closed.

    At most ``most`` are open at once; one that nobody used for ``idle`` seconds is closed, unless a backend still waits for its events.
    """

    _nursery: trio.Nursery

    def __init__(self, opener: Opener, log: Log, *, most: int = 32, idle: float = 300.0) -> None:
        self._opener = opener
        self._log = log
        self._most = most
        self._idle = idle
        self._entries: dict[tuple[Path, str], _Open] = {}
        self._ending = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as self._nursery:
            task_status.started()
            while not self._ending.is_set():
                with trio.move_on_after(min(5.0, max(0.05, self._idle / 4))):
                    await self._ending.wait()
                await self._close_idle()

    def end(self) -> None:
        """Open nothing more, and close what is open.  (Cancelling would take its writer tasks from a runtime that drains.)"""
        self._ending.set()
        for entry in self._entries.values():
            entry.close()

    def runtimes(self) -> list[Runtime]:
        """Those that are open now."""
        return [entry.runtime for entry in self._entries.values() if entry.runtime is not None]

    def at_hand(self, home: Path, profile: str) -> Runtime | None:
        """The runtime, if it is open.  Good until the caller's next checkpoint."""
        entry = self._entries.get((home, profile))
        if entry is None or entry.runtime is None:
            return None
        entry.used = trio.current_time()
        return entry.runtime

    @asynccontextmanager
    async def profile(self, home: Path, profile: str) -> AsyncIterator[Runtime]:
        """The runtime for the length of the block; opened if it has to be.

        Raises what opening raises, :class:`DaemonBusy` where too many profiles are in use at once, :class:`DaemonUnavailable` at the end.
        """
        entry = await self._entry(home, profile)
        assert entry.runtime is not None
        entry.users += 1
        try:
            yield entry.runtime
        finally:
            entry.users -= 1
            entry.used = trio.current_time()

    async def _entry(self, home: Path, profile: str) -> _Open:
        key = (home, profile)
        while True:
            entry = self._entries.get(key)
            if entry is None:
                await self._make_room()
                if key not in self._entries:
                    self._begin(key)
            elif entry.runtime is not None:
                return entry
            elif not entry.settled.is_set():
                await entry.settled.wait()
                if entry.problem is not None:
                    raise entry.problem
            else:
                await entry.gone.wait()

    def _begin(self, key: tuple[Path, str]) -> None:
        if self._ending.is_set():
            raise DaemonUnavailable("the daemon is ending: try again when it is back")
        self._entries[key] = entry = _Open(trio.current_time())
        self._nursery.start_soon(self._keep, key, entry, name=f"memoryd profile {key[1]}")

    async def _keep(self, key: tuple[Path, str], entry: _Open) -> None:
        """The task that a runtime lives in.  Whatever ends it ends this profile only; the next call opens it again."""
        try:
            async with self._opener(*key) as runtime:
                if not entry.stop.is_set():
                    entry.runtime = runtime
                    entry.settled.set()
                await entry.stop.wait()
        except MemorydError as error:
            entry.problem = error
            self._log.warning("daemon.profile_closed", error=type(error).__name__)
        except Exception as error:  # noqa: BLE001 - the edge of a profile: a bug in one must not end the others
            entry.problem = error
            self._log.error("daemon.profile_crashed", error=type(error).__name__)
        finally:
            entry.runtime = None
            del self._entries[key]
            entry.settled.set()
            entry.gone.set()

    async def _make_room(self) -> None:
        """Wait until one more may be open, closing the one that was not used for longest."""
        with trio.move_on_after(_WAIT):
            while len(self._entries) >= self._most:
                free = [entry for entry in self._entries.values() if entry.is_free]
                if free:
                    longest = min(free, key=lambda entry: entry.used)
                    longest.close()
                    await longest.gone.wait()
                else:
                    await trio.sleep(_LOOK)
            return
        raise DaemonBusy(f"{self._most} profiles are in use at once, which is all that this daemon opens; try again later")

    async def _close_idle(self) -> None:
        for entry in list(self._entries.values()):
            if (runtime := self._unused(entry)) is None:
                continue
            done = await runtime.drain(0)  # a backend that is down must find the events when it is back
            if done.local and done.remote and self._unused(entry) is runtime:
                entry.close()

    def _unused(self, entry: _Open) -> Runtime | None:
        """The runtime of a profile that nobody uses and nobody has used for long."""
        return entry.runtime if entry.users == 0 and trio.current_time() - entry.used >= self._idle else None
