"""A runtime on a loop of its own, in a daemon thread: what programs without trio reach through threads or asyncio."""

from __future__ import annotations

import atexit
import contextvars
import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar, cast

import attrs
import trio

from memoryd.errors import ClosedError, ForkedError, MemorydError
from memoryd.runtime._door import open_runtime
from memoryd.runtime._runtime import Runtime

__all__ = ["Job", "Portal"]

T = TypeVar("T")
Done: TypeAlias = Callable[[T | None, BaseException | None], object]


@attrs.define(slots=True, eq=False, repr=False)
class Job:
    """A call that :meth:`Portal.submit` started; ``cancel`` may be called from any thread, more than once."""

    _token: trio.lowlevel.TrioToken
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    def cancel(self) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self.scope.cancel)


class Portal:
    """Opens in the constructor (raising what :func:`open_runtime` raises) and ends with :meth:`close`, or when nobody has it any more.

    At interpreter exit without a close, an ``atexit`` handler that the open registers flushes within ``deadlines.exit``; what cannot be
    journaled by then goes to ``spool/``.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._loop = loop = _Loop(arguments)
        self._pid = os.getpid()
        weakref.finalize(self, loop.end).atexit = False
        loop.start()

    @property
    def forked(self) -> bool:
        """True in a child that was forked after the portal opened."""
        return os.getpid() != self._pid

    @property
    def runtime(self) -> Runtime:
        """The runtime, whose plain methods may be called from any thread."""
        if self.forked:
            raise ForkedError('memoryd was opened before a fork: open it in the child, or use Memory(fork="reopen")')
        if self._loop.runtime is None or not self._loop.thread.is_alive():
            raise ClosedError("this memoryd runtime is closed: open it again")
        return self._loop.runtime

    def run(self, call: Callable[[Runtime], Awaitable[T]]) -> T:
        """Run ``call(runtime)`` on the loop, in the caller's context, and wait for its result.  Its own deadline bounds the wait.

        What a signal handler raises meanwhile (KeyboardInterrupt) cancels the call and leaves at once.
        """
        answers: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
        job = self.submit(call, lambda value, error: answers.put((value, error)))
        try:
            value, error = answers.get()
        except BaseException:  # what a signal handler raised: nobody waits for the answer any more
            job.cancel()
            raise
        if error is None:
            return cast("T", value)
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame: do not keep the cycle

    def submit(self, call: Callable[[Runtime], Awaitable[T]], done: Done[T]) -> Job:
        """Start ``call(runtime)`` on the loop in a copy of the caller's context.  ``done(value, error)`` is called once, on the loop's
        thread; both are None where the job was cancelled."""
        runtime, loop = self.runtime, self._loop
        job = Job(loop.token)
        context = contextvars.copy_context()

        def start() -> None:
            if loop.stop.is_set():
                done(None, ClosedError("this memoryd runtime is closed: open it again"))
            else:
                context.run(loop.nursery.start_soon, _work, call, runtime, job.scope, done)

        try:
            loop.token.run_sync_soon(start)
        except trio.RunFinishedError:
            raise ClosedError("this memoryd runtime is closed: open it again") from None
        return job

    def close(self) -> None:
        """Drain to the close deadline and end the thread; more than once is fine.  Raises what closing the log raised."""
        if not self.forked:
            self._loop.end()
            self._loop.join()


async def _work(call: Callable[[Runtime], Awaitable[T]], runtime: Runtime, scope: trio.CancelScope, done: Done[T]) -> None:
    value: T | None = None
    problem: BaseException | None = ClosedError("this memoryd runtime was closed during the call")
    try:
        with scope:
            value = await call(runtime)
        problem = None
    except Exception as error:  # noqa: BLE001 - belongs to whoever waits for the job, not to the loop
        problem = error
    finally:
        done(value, problem)


class _Loop:
    """The thread's half of a portal, which outlives a portal that is dropped until everything is closed."""

    token: trio.lowlevel.TrioToken
    nursery: trio.Nursery

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.runtime: Runtime | None = None
        self.stop = trio.Event()
        self.thread = threading.Thread(target=self._main, name="memoryd:loop", daemon=True)
        self._arguments = arguments
        self._pid = os.getpid()
        self._problem: BaseException | None = None
        self._opened = threading.Event()
        self._ending = False

    def start(self) -> None:
        self.thread.start()
        try:
            self._opened.wait()
        except BaseException:  # KeyboardInterrupt: nobody will have this portal
            self.end()
            raise
        if self.runtime is None:
            self.join()

    def end(self) -> None:
        """Ask the loop to close and end.  Any thread, a finalizer too, more than once, also while it opens."""
        self._ending = True
        if self._pid == os.getpid() and self.runtime is not None:
            with suppress(trio.RunFinishedError):
                self.token.run_sync_soon(self.stop.set)

    def join(self) -> None:
        """Wait for the end, and raise once what ended it."""
        self.thread.join()
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def _main(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that opens or closes
            self._problem = _unwrapped(error)
        finally:
            self.runtime = None
            atexit.unregister(self._flush_at_exit)
            self._opened.set()

    async def _serve(self) -> None:
        async with open_runtime(**self._arguments) as runtime:
            try:
                async with trio.open_nursery() as self.nursery:
                    self.token = trio.lowlevel.current_trio_token()
                    self.runtime = runtime
                    atexit.register(self._flush_at_exit)
                    self._opened.set()
                    if not self._ending:
                        await self.stop.wait()
                    self.nursery.cancel_scope.cancel()
            finally:
                self.stop.set()  # a call that comes now is answered, not started

    def _flush_at_exit(self) -> None:
        runtime = self.runtime
        if self._pid == os.getpid() and runtime is not None:
            runtime.last_flush()


def _unwrapped(error: BaseException) -> BaseException:
    """The memoryd error alone, where a group holds nothing else."""
    inner = error
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    return inner if isinstance(inner, MemorydError) else error
