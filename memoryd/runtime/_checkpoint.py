"""The runtime's door to the gate: scope, privacy and deadline are settled here; the work runs on the gate's own thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memoryd.core import CheckpointInfo, Receipt, Restored, Verification, check_name, check_text, checked_limit
from memoryd.errors import CheckpointBlocked, CheckpointNotFound, InvalidInput
from memoryd.runtime._ingest import Ingest
from memoryd.runtime._kernel import Kernel

__all__ = ["Checkpoints"]


class Checkpoints:
    """Needs the local disk only: no backend, no log, no network."""

    def __init__(self, kernel: Kernel, ingest: Ingest) -> None:
        self._kernel = kernel
        self._ingest = ingest

    async def checkpoint(self, messages: Sequence[Any] | None, host: str, trigger: str, source: bytes | None) -> Receipt:
        scope = self._ingest.scope()
        user, session = scope.need_user(), scope.need_session()
        check_name("host", host)
        check_name("trigger", trigger)
        if messages is not None and (isinstance(messages, (str, bytes)) or not isinstance(messages, Sequence)):
            raise InvalidInput("messages", f"expected a list of messages, got {type(messages).__name__}")
        private = self._ingest.is_private(scope)
        gate, at = self._kernel.gate, self._kernel.clock()
        rows = None if messages is None else list(messages)
        try:
            with self._kernel.stages["checkpoint"].timed():
                receipt = await self._kernel.gate_worker.run(
                    lambda: gate.checkpoint(
                        rows, user=user, session=session, host=host, trigger=trigger, at=at, source=source, private=private
                    )
                )
        except CheckpointBlocked as blocked:
            self._kernel.log.warning("gate.refused", cause=blocked.cause)
            raise
        self._kernel.log.info("gate.allowed", verdict=receipt.verdict, rows=receipt.rows, new_rows=receipt.new_rows)
        return receipt

    async def list(self, session: str | None, limit: int) -> list[CheckpointInfo]:
        user = self._ingest.scope().need_user()
        count = checked_limit(limit)
        if session is not None:
            check_name("session", session)
        shelf = self._kernel.gate.shelf
        return list(await self._kernel.archive_worker.run(lambda: shelf.list(user, session, count), abandon=True))

    async def info(self, id: str) -> CheckpointInfo:
        user = self._ingest.scope().need_user()
        return await self._kernel.archive_worker.run(self._own, id, user, abandon=True)

    async def restore(self, id: str, attempt: int | None, full: bool) -> Restored:
        user = self._ingest.scope().need_user()
        shelf = self._kernel.gate.shelf

        def work() -> Restored:
            return shelf.restore(self._own(id, user).id, attempt=attempt, full=full)

        return await self._kernel.archive_worker.run(work, abandon=True)

    async def verify(self, id: str | None, on_progress: Callable[[int, int], None] | None) -> Verification:
        user = self._ingest.scope().need_user()
        shelf = self._kernel.gate.shelf

        def work() -> Verification:
            return shelf.verify(None if id is None else self._own(id, user).id, on_progress)

        return await self._kernel.archive_worker.run(work, abandon=True)

    def _own(self, id: str, user: str) -> CheckpointInfo:
        """A checkpoint of ``user``; another user's is not found, whoever knows its id."""
        info = self._kernel.gate.shelf.show(check_text("id", id))
        if info.user != user:
            raise CheckpointNotFound("no checkpoint of this user has that id; see 'memoryd checkpoint list'")
        return info
