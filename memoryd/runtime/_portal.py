"""A runtime on a loop of its own, in a daemon thread: what programs without trio reach through threads or asyncio."""

from __future__ import annotations

import atexit
import contextvars
import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import attrs
import trio

from memoryd.errors import ClosedError, ForkedError, MemorydError
from memoryd.runtime._open import open_runtime
from memoryd.runtime._runtime import Runtime

__all__ = ["Job", "Portal"]

T = TypeVar("T")


@attrs.define(slots=True, eq=False)
class Job:
    """A call that :meth:`Portal.submit` started; ``cancel`` may be called from any thread, more than once."""

    _token: trio.lowlevel.TrioToken
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    def cancel(self) -> None:
        try:
            self._token.run_sync_soon(self.scope.cancel)
        except trio.RunFinishedError:
            return


class Portal:
    """Opens in the constructor (raising what :func:`open_runtime` raises) and ends with :meth:`close`.

    At interpreter exit without a close, an ``atexit`` handler that the open registers flushes within ``deadlines.exit``; what cannot be
    journaled by then goes to ``spool/``.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments
        self._pid = os.getpid()
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self._runtime: Runtime | None = None
        self._at_exit = _flusher(weakref.ref(self))
        self._thread = threading.Thread(target=self._main, name="memoryd:loop", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._runtime is None:
            self._thread.join()
            assert self._problem is not None
            raise self._problem
        atexit.register(self._at_exit)

    # -- the loop's thread ----------------------------------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:  # noqa: BLE001  handed to the thread that opened or closes the portal
            self._problem = _unwrapped(error)
        finally:
            self._started.set()

    async def _serve(self) -> None:
        async with open_runtime(**self._arguments) as runtime, trio.open_nursery() as nursery:
            self._token = trio.lowlevel.current_trio_token()
            self._stop = trio.Event()
            self._nursery = nursery
            self._runtime = runtime
            self._started.set()
            await self._stop.wait()
            nursery.cancel_scope.cancel()

    # -- other threads --------------------------------------------------------------------------------------------------------

    @property
    def forked(self) -> bool:
        """True in a child that was forked after the portal opened."""
        return os.getpid() != self._pid

    @property
    def runtime(self) -> Runtime:
        """The runtime, whose plain methods may be called from any thread."""
        if self.forked:
            raise ForkedError('memoryd was opened before a fork: open it in the child, or use Memory(fork="reopen")')
        if self._runtime is None or not self._thread.is_alive():
            raise ClosedError("this memoryd runtime is closed: open it again")
        return self._runtime

    def run(self, call: Callable[[Runtime], Awaitable[T]]) -> T:
        """Run ``call(runtime)`` on the loop, in the caller's context, and wait for its result.  Its own deadline bounds the wait."""
        runtime = self.runtime
        try:
            return trio.from_thread.run(_called, call, runtime, trio_token=self._token)
        except (trio.RunFinishedError, trio.Cancelled):
            raise ClosedError("this memoryd runtime was closed during the call") from None

    def submit(self, call: Callable[[Runtime], Awaitable[T]], done: Callable[[T | None, BaseException | None], object]) -> Job:
        """Start ``call(runtime)`` on the loop in a copy of the caller's context.  ``done(value, error)`` is called once, on the loop's
        thread; both are None where the job was cancelled."""
        runtime = self.runtime
        job = Job(self._token)
        context = contextvars.copy_context()

        async def work() -> None:
            value: T | None = None
            problem: BaseException | None = ClosedError("this memoryd runtime was closed during the call")
            try:
                with job.scope:
                    value = await call(runtime)
                problem = None
            except Exception as error:  # noqa: BLE001  belongs to whoever waits for the job, not to this nursery
                problem = error
            finally:
                done(value, problem)

        def start() -> None:
            if self._stop.is_set():
                done(None, ClosedError("this memoryd runtime is closed: open it again"))
            else:
                context.run(self._nursery.start_soon, work)

        try:
            self._token.run_sync_soon(start)
        except trio.RunFinishedError:
            raise ClosedError("this memoryd runtime is closed: open it again") from None
        return job

    def flush_at_exit(self) -> None:
        """What an exit without a close does: flush within ``deadlines.exit``, spool the rest, say nothing."""
        if self.forked or self._runtime is None or not self._thread.is_alive():
            return
        self._runtime.last_flush()

    def close(self) -> None:
        """Drain to the close deadline and end the thread; more than once is fine.  Raises what closing the log raised."""
        atexit.unregister(self._at_exit)
        if self.forked or self._runtime is None:
            return
        with suppress(trio.RunFinishedError):  # the loop may have ended by itself; its error is raised below
            self._token.run_sync_soon(self._stop.set)
        self._thread.join()
        self._runtime = None
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem


async def _called(call: Callable[[Runtime], Awaitable[T]], runtime: Runtime) -> T:
    return await call(runtime)


def _flusher(portal: weakref.ref[Portal]) -> Callable[[], None]:
    def flush() -> None:
        alive = portal()
        if alive is not None:
            alive.flush_at_exit()

    return flush


def _unwrapped(error: BaseException) -> BaseException:
    """The memoryd error alone, where a group holds nothing else."""
    inner = error
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    return inner if isinstance(inner, MemorydError) else error
