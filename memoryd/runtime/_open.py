"""Opening and closing: one nursery owns every task; closing drains to a deadline in a shielded scope."""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Literal

import trio

from memoryd.core import Config, fence_marker
from memoryd.errors import BackendError, StoreError
from memoryd.journal import Journal
from memoryd.runtime._deliver import Delivery
from memoryd.runtime._keep import Barrier, HeldRetry, Maintenance
from memoryd.runtime._kernel import Kernel, Member, build_kernel, open_member, try_journal
from memoryd.runtime._members import AUTO, health_problem
from memoryd.runtime._owner import Owner
from memoryd.runtime._project import Projection
from memoryd.runtime._runtime import Runtime
from memoryd.runtime._supervise import Child, supervise
from memoryd.runtime._wake import Bells
from memoryd.settings import load_config, resolve_home
from memoryd.store import open_profile

__all__ = ["OpenRuntime"]

_REOPEN = 1.0


class OpenRuntime:
    """What :func:`memoryd.open_runtime` gives.  An error of the body leaves it as it is, not wrapped in a group."""

    def __init__(
        self,
        home: str | os.PathLike[str] | None,
        profile: str,
        config: Config | Mapping[str, Any] | None,
        on_bug: Literal["contain", "raise"],
        vfs: str | None,
    ) -> None:
        self._home = home
        self._profile = profile
        self._config = config
        self._on_bug: Literal["contain", "raise"] = on_bug
        self._vfs = vfs
        self._nursery_manager = trio.open_nursery()
        self._owner: Owner | None = None

    async def __aenter__(self) -> Runtime:
        bells = Bells()
        self._kernel = kernel = await trio.to_thread.run_sync(self._build, bells)
        try:
            await self._settle_auto()
            for member in kernel.members:
                if not kernel.is_remote(member):  # a remote one may hang: its writer task opens it
                    await open_member(kernel, member)
        except BaseException:  # also a cancellation: nobody else closes what was opened
            with trio.CancelScope(shield=True):
                await self._close_everything()
            raise
        self._runtime = Runtime(kernel, fence_marker(kernel.profile.key))
        self._nursery = await self._nursery_manager.__aenter__()
        self._start("prefetch", self._runtime.parts[0].run)
        if kernel.journal is not None:
            self._start_log_tasks(kernel.journal)
        elif not kernel.is_null:
            self._start("reopen", self._reopen)
        kernel.log.info("runtime.opened", backend=kernel.config.backend)
        return self._runtime

    async def _settle_auto(self) -> None:
        """Under ``auto`` a remote primary has to be healthy now; else local is the primary of this runtime."""
        kernel, primary = self._kernel, self._kernel.primary
        if kernel.config.backend != AUTO or primary is None or not kernel.is_remote(primary):
            return
        problem = await health_problem(primary.backend)
        primary.is_open = not problem
        if problem:
            await self._close_member(primary)
            kernel.demote(primary, problem)

    def _start(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        child = Child(name, run)
        self._runtime.children.append(child)
        self._nursery.start_soon(supervise, child, self._kernel.log, self._on_bug, name=f"memoryd {name}")

    async def _reopen(self) -> None:
        """The log could not be opened: try until it can, then start what works on it."""
        kernel = self._kernel
        while not await kernel.sync_worker.run(try_journal, kernel, self._vfs):
            await trio.sleep(_REOPEN)
        assert kernel.journal is not None
        self._start_log_tasks(kernel.journal)

    def _build(self, bells: Bells) -> Kernel:
        home = resolve_home(self._home)
        config = self._config if isinstance(self._config, Config) else load_config(home, self._profile, self._config).config
        kernel = build_kernel(home, open_profile(home, self._profile), config, self._on_bug, bells, self._vfs)
        return kernel

    def _start_log_tasks(self, journal: Journal) -> None:
        kernel = self._kernel
        self._start("barrier", Barrier(kernel, journal).run)
        self._start("held", HeldRetry(kernel, journal).run)
        self._start("maintenance", Maintenance(kernel, journal, self._runtime.parts[1]).run)
        for member in kernel.members:
            self._start(f"writer {member.name}", self._writer(member))
        if self._owner is not None:
            self._start("owner", self._owner.run)

    def _writer(self, member: Member) -> Callable[[], Awaitable[None]]:
        kernel = self._kernel
        assert kernel.journal is not None and kernel.outbox is not None
        if not kernel.is_remote(member):
            return Projection(kernel, member, kernel.journal).run
        if self._owner is None:
            self._owner = Owner(kernel.profile.directory)
        return Delivery(kernel, member, kernel.journal, kernel.outbox, self._owner).run

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        interruption: KeyboardInterrupt | None = None
        alive = trio.current_effective_deadline() > -math.inf  # cancelled from outside, the writer tasks are at their end as well
        try:
            with trio.CancelScope(shield=True):
                await self._drain(alive)
        except KeyboardInterrupt as pressed:  # what is not drained is in the log; the tasks must end all the same
            interruption = pressed
        self._nursery.cancel_scope.cancel()
        ours = isinstance(error, (trio.Cancelled, BaseExceptionGroup))
        try:
            result = await self._nursery_manager.__aexit__(
                kind if ours else None, error if ours else None, trace if ours else None
            )
        finally:
            with trio.CancelScope(shield=True):
                await self._close_everything()
        if interruption is not None:
            raise interruption
        return result if ours else None

    async def _drain(self, alive: bool) -> None:
        """Stop accepting and drain what is quick to drain, where the tasks are alive that do it.  What is left is in the log."""
        kernel = self._kernel
        kernel.accepting = False
        failed = any(child.state == "failed" for child in self._runtime.children)
        if kernel.journal is not None and alive and not failed:
            with trio.move_on_after(kernel.config.deadlines.close * 0.6):
                await self._drain_local()

    async def _drain_local(self) -> None:
        kernel = self._kernel
        assert kernel.journal is not None
        while kernel.journal.held:
            await kernel.sync_worker.run(kernel.journal.retry_held)
            await trio.sleep(0.01)
        history = kernel.history
        if history is not None:
            await history[0].progress.reach(kernel.journal.last_seq, kernel.config.deadlines.close * 0.5)

    async def _close_everything(self) -> None:
        kernel = self._kernel
        kernel.bells.close()
        try:
            for member in kernel.members:
                await self._close_member(member)
        finally:
            if self._owner is not None:
                self._owner.close()
            await self._close_stores()

    async def _close_member(self, member: Member) -> None:
        kernel = self._kernel
        try:
            with trio.fail_after(kernel.config.deadlines.close * 0.2):
                await member.backend.aclose()
        except (BackendError, StoreError, trio.TooSlowError) as error:
            kernel.log.warning("runtime.close", backend=member.name, error=type(error).__name__)
        except Exception as error:  # a bug of the adapter must keep nothing else from closing
            if kernel.on_bug == "raise":
                raise
            kernel.log.error("runtime.close_crashed", backend=member.name, error=type(error).__name__)

    async def _close_stores(self) -> None:
        try:
            await trio.to_thread.run_sync(self._kernel.close_stores)
        finally:
            for worker in self._kernel.workers:
                worker.close()
        self._kernel.log.info("runtime.closed")


