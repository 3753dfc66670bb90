"""A thread with a connection of its own, and what works on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from memoryd.errors import BackendTransient, ClosedError, DeadlineExceeded, StoreError
from memoryd.store import Connection, Worker

__all__ = ["Lane"]

T = TypeVar("T")


class Side(Protocol):
    """What a lane serves: something that holds the lane's connection."""

    @property
    def connection(self) -> Connection: ...


S = TypeVar("S", bound=Side)


class Lane(Generic[S]):
    """Runs functions of its side one after another, on its own thread.

    Every failure of the store is raised as :class:`~memoryd.errors.BackendTransient`: the log keeps the events, so trying again later
    is always right, and never an event's fault.
    """

    def __init__(self, name: str, opener: Callable[[], S]) -> None:
        self._name = name
        self._opener = opener
        self._worker: Worker | None = None
        self._side: S | None = None
        self._waited_for = 0  # reads whose callers wait
        self._busy = False  # a read runs, maybe one that nobody waits for any more

    @property
    def load(self) -> int:
        """How much a new read would have to wait for; 0 for nothing."""
        return self._waited_for + self._busy

    async def open(self) -> None:
        """Open the side; where it is open already (another lane's open had failed) it stays as it is."""
        if self._worker is not None:
            return
        worker = Worker(self._name)
        try:
            self._side = await worker.run(self._opener)
        except BaseException:  # also a cancellation: a thread without an owner would never end
            worker.close(0)
            raise
        self._worker = worker

    async def write(self, work: Callable[[S], T]) -> T:
        """Run ``work`` to its end, also when cancelled."""
        with _transient():
            return await self._open_worker().run(self._work, work)

    async def read(self, work: Callable[[S], T], seconds: float) -> T:
        """Run ``work``; cancelled, this returns at once, and the statement ends by itself after ``seconds``."""
        self._waited_for += 1
        try:
            with _transient():
                return await self._open_worker().run(self._bounded, work, time.monotonic() + seconds, abandon=True)
        finally:
            self._waited_for -= 1

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.run(self._close)
            worker.close()

    def _open_worker(self) -> Worker:
        if self._worker is None:
            raise ClosedError(f"{self._name}: the backend is not open")
        return self._worker

    def _work(self, work: Callable[[S], T]) -> T:
        assert self._side is not None
        return work(self._side)

    def _bounded(self, work: Callable[[S], T], deadline: float) -> T:
        assert self._side is not None
        self._busy = True
        try:
            with self._side.connection.progress(deadline):
                return work(self._side)
        finally:
            self._busy = False

    def _close(self) -> None:
        assert self._side is not None
        self._side.connection.close()


@contextmanager
def _transient() -> Iterator[None]:
    try:
        yield
    except (StoreError, DeadlineExceeded) as error:
        raise BackendTransient(str(error)) from error
