"""A thread of its own for one connection: trio and plain threads hand it calls, it runs them one after another."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar, TypeVarTuple, cast

from memoryd.errors import ClosedError, DeadlineExceeded, ForkedError

__all__ = ["Worker"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Job(Generic[T]):
    """One call.  Whoever takes the token, the thread to run it or its owner to withdraw it, decides; ``list.pop`` is atomic."""

    __slots__ = ("_token", "context", "done", "error", "fn", "value")

    def __init__(self, fn: Callable[[], T], done: Callable[[_Job[T]], object]) -> None:
        self.fn = fn
        self.done = done
        self.context = contextvars.copy_context()
        self.value: T | None = None
        self.error: BaseException | None = None
        self._token = [None]

    def take(self) -> bool:
        try:
            self._token.pop()
        except IndexError:
            return False
        return True

    def run(self) -> None:
        if not self.take():
            return
        try:
            self.value = self.context.run(self.fn)
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is; the thread itself goes on
            self.error = error
        self.done(self)

    def result(self) -> T:
        if self.error is None:
            return cast("T", self.value)
        try:
            raise self.error
        finally:
            self.error = None  # the traceback refers to this frame: do not keep the cycle


class Worker:
    """A daemon thread that runs calls in the order they were given, each in a copy of its caller's context.

    A call that has begun is never abandoned unless the caller says so, because a cancelled write is in doubt; one that has not begun
    is withdrawn and certain not to happen.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._pid = os.getpid()
        self._queue: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name=f"memoryd:{name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Calls that have not begun, about."""
        return self._queue.qsize()

    async def run(self, fn: Callable[[*Ts], T], *args: *Ts, abandon: bool = False) -> T:
        """Run ``fn(*args)`` on the thread, from trio.  Cancelled while it runs, this waits for its end and then raises Cancelled.

        ``abandon=True`` is for reads: cancelled, this returns at once and the call's result is thrown away.
        """
        import trio  # a program without a loop uses call() and need not pay for it

        await trio.lowlevel.checkpoint_if_cancelled()
        task = trio.lowlevel.current_task()
        token = trio.lowlevel.current_trio_token()
        waiting = True

        def wake() -> None:
            if waiting:
                trio.lowlevel.reschedule(task)

        def done(_: _Job[T]) -> None:
            with suppress(trio.RunFinishedError):  # the loop ended before the call did: nobody is left to tell
                token.run_sync_soon(wake)

        def abort(_: object) -> trio.lowlevel.Abort:
            nonlocal waiting
            if not (job.take() or abandon):
                return trio.lowlevel.Abort.FAILED
            waiting = False
            return trio.lowlevel.Abort.SUCCEEDED

        job = _Job(lambda: fn(*args), done)
        self._submit(job)
        await trio.lowlevel.wait_task_rescheduled(abort)
        return job.result()

    def call(self, fn: Callable[[*Ts], T], *args: *Ts, timeout: float | None = None) -> T:
        """Run ``fn(*args)`` on the thread and wait, from a plain thread.  ``timeout`` is in seconds.

        At the timeout this raises :class:`~memoryd.errors.DeadlineExceeded`: a call not begun is withdrawn, one that runs goes on.
        """
        replies: SimpleQueue[_Job[T]] = SimpleQueue()
        job = _Job(lambda: fn(*args), replies.put)
        self._submit(job)
        try:
            return replies.get(timeout=timeout).result()
        except Empty:
            state = "did not begin" if job.take() else "still runs"
            raise DeadlineExceeded(f"{self.name}: a call {state} after {timeout} s") from None

    def close(self, timeout: float | None = None) -> bool:
        """Run what was given so far, end the thread and wait for it; False where it still runs after ``timeout`` seconds."""
        if os.getpid() != self._pid:
            return True
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _submit(self, job: _Job[T]) -> None:
        if os.getpid() != self._pid:
            raise ForkedError(f'{self.name}: this process was forked; open a runtime in the child (fork="reopen")')
        with self._gate:
            if self._closed:
                raise ClosedError(f"{self.name}: the store was closed; open a new runtime")
            self._queue.put(job)

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None:
            job.run()
            del job  # while idle, keep nobody's arguments alive
