"""Memory for asyncio programs: awaitable twins of the runtime's methods, over the same portal as :mod:`memoryd.blocking`.

    async with memoryd.aio.Memory() as memory:
        with memoryd.scope(user="ada", session="s1"):
            await memory.sync_turn("I live in Turin", "Noted.")
            print(await memory.recall("where do I live?"))

Every method takes the scope of its task.  A cancelled call is cancelled on the memory's loop too, and ends when that has ended: a
commit that has begun is finished.  What each method does, returns and raises stands at :class:`memoryd.Runtime`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar, cast

from memoryd.core import (
    Accepted,
    CheckpointInfo,
    Config,
    Context,
    Drained,
    Forgotten,
    Hit,
    MemoryVersion,
    Recall,
    Receipt,
    Restored,
    Status,
    Stored,
    Verification,
)
from memoryd.core import Memory as MemoryValue
from memoryd.errors import ClosedError
from memoryd.journal import DeadLetter
from memoryd.runtime import Portal, Runtime

__all__ = ["Memory"]

T = TypeVar("T")
When = datetime | float | str | None


class Memory:
    """An open memory of one profile, as an async context manager of asyncio.  Any task of any asyncio loop may call it."""

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        profile: str = "default",
        config: Config | Mapping[str, Any] | None = None,
        *,
        vfs: str | None = None,
    ) -> None:
        self._arguments = {"home": home, "profile": profile, "config": config, "vfs": vfs}
        self._portal: Portal | None = None

    async def __aenter__(self) -> Memory:
        try:
            await _to_its_end(asyncio.get_running_loop().run_in_executor(None, self._open))
        except asyncio.CancelledError:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Drain to the close deadline and end; a cancellation is raised after that."""
        if self._portal is not None:
            await _to_its_end(asyncio.get_running_loop().run_in_executor(None, self._portal.close))

    def _open(self) -> None:
        self._portal = Portal(self._arguments)

    def _here(self) -> Portal:
        if self._portal is None:
            raise ClosedError("open it first: 'async with memoryd.aio.Memory() as memory'")
        return self._portal

    @property
    def _runtime(self) -> Runtime:
        return self._here().runtime

    async def _run(self, call: Callable[[Runtime], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def settle(value: T | None, error: BaseException | None) -> None:
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(cast(T, value))

        def done(value: T | None, error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the caller's loop was closed meanwhile: nobody waits
                loop.call_soon_threadsafe(settle, value, error)

        job = self._here().submit(call, done)
        return await _to_its_end(answer, job.cancel)

    # -- plain ----------------------------------------------------------------------------------------------------------------

    async def sync_turn(
        self,
        user: str,
        assistant: str,
        *,
        messages: Sequence[Any] | None = None,
        turn_id: str | None = None,
        created_at: When = None,
    ) -> Accepted:
        return self._runtime.sync_turn(user, assistant, messages=messages, turn_id=turn_id, created_at=created_at)

    async def queue_prefetch(self, query: str) -> None:
        self._runtime.queue_prefetch(query)

    async def mark_session(self, mark: str, data: Mapping[str, Any] | None = None) -> Accepted:
        return self._runtime.mark_session(mark, data)

    async def dead_letters(self) -> list[DeadLetter]:
        return self._runtime.dead_letters()

    # -- over the portal --------------------------------------------------------------------------------------------------------

    async def settled(self, accepted: Accepted, timeout: float) -> Accepted:
        return await self._run(lambda rt: rt.settled(accepted, timeout))

    async def prefetch(self, query: str) -> Context:
        return await self._run(lambda rt: rt.prefetch(query))

    async def recall(
        self,
        query: str,
        limit: int = 10,
        as_of: When = None,
        session: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
    ) -> Recall:
        return await self._run(lambda rt: rt.recall(query, limit, as_of, session, labels=labels))

    async def store(
        self, key: str, value: str, metadata: Mapping[str, Any] | None = None, *, created_at: When = None
    ) -> Stored:
        return await self._run(lambda rt: rt.store(key, value, metadata, created_at=created_at))

    async def retrieve(self, key: str) -> MemoryValue | None:
        return await self._run(lambda rt: rt.retrieve(key))

    async def query(self, text: str, limit: int = 10) -> list[MemoryValue]:
        return await self._run(lambda rt: rt.query(text, limit))

    async def list_keys(self) -> list[str]:
        return await self._run(lambda rt: rt.list_keys())

    async def list_memories(self, limit: int | None = None, offset: int = 0) -> list[MemoryValue]:
        return await self._run(lambda rt: rt.list_memories(limit, offset))

    async def history(self, key: str, as_of: datetime | float | str | None = None) -> list[MemoryVersion]:
        return await self._run(lambda rt: rt.history(key, as_of))

    async def find(self, id: str) -> Hit | None:
        return await self._run(lambda rt: rt.find(id))

    async def edit(self, id: str, value: str | None = None, *, user: str | None = None, assistant: str | None = None) -> Stored:
        return await self._run(lambda rt: rt.edit(id, value, user=user, assistant=assistant))

    async def delete(self, key: str) -> Stored:
        return await self._run(lambda rt: rt.delete(key))

    async def forget(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        session: str | None = None,
        since: When = None,
        until: When = None,
        everything: bool = False,
    ) -> Forgotten:
        return await self._run(
            lambda rt: rt.forget(id, key=key, session=session, since=since, until=until, everything=everything)
        )

    async def flush(self, timeout: float | None = None) -> None:
        await self._run(lambda rt: rt.flush(timeout))

    async def drain(self, timeout: float | None = None) -> Drained:
        return await self._run(lambda rt: rt.drain(timeout))

    async def catch_up(self, timeout: float) -> int:
        return await self._run(lambda rt: rt.catch_up(timeout))

    async def checkpoint(
        self,
        messages: Sequence[Any] | None,
        *,
        host: str = "python",
        trigger: str = "manual",
        source: bytes | None = None,
    ) -> Receipt:
        return await self._run(lambda rt: rt.checkpoint(messages, host=host, trigger=trigger, source=source))

    async def checkpoints(self, session: str | None = None, limit: int = 100) -> list[CheckpointInfo]:
        return await self._run(lambda rt: rt.checkpoints(session, limit))

    async def checkpoint_info(self, id: str) -> CheckpointInfo:
        return await self._run(lambda rt: rt.checkpoint_info(id))

    async def restore(self, id: str, *, attempt: int | None = None, full: bool = False) -> Restored:
        return await self._run(lambda rt: rt.restore(id, attempt=attempt, full=full))

    async def verify(self, id: str | None = None, *, on_progress: Callable[[int, int], None] | None = None) -> Verification:
        return await self._run(lambda rt: rt.verify(id, on_progress=on_progress))

    async def status(self) -> Status:
        return await self._run(lambda rt: rt.status())


async def _to_its_end(work: asyncio.Future[T], cancel: Callable[[], object] = lambda: None) -> T:
    """Wait for ``work``, however often the caller is cancelled: ``cancel`` is told, and the cancellation raised at the end."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
            cancel()
    if cancelled is None:
        return work.result()
    work.exception()  # heard: the cancellation is what the caller is told
    raise cancelled
