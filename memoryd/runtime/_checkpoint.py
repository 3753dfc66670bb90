"""The runtime's door to the gate: scope, privacy and deadline are settled here; the work runs on the gate's own thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoryd.core import CheckpointInfo, Receipt, Restored, Verification, check_name, checked_limit
from memoryd.errors import InvalidInput
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
        rows = None if private or messages is None else list(messages)
        return await self._kernel.gate_worker.run(self._decide, rows, user, session, host, trigger, source)

    def _decide(
        self, rows: list[Any] | None, user: str, session: str, host: str, trigger: str, source: bytes | None
    ) -> Receipt:
        return self._kernel.gate.checkpoint(
            rows,
            user=user,
            session=session,
            host=host,
            trigger=trigger,
            at=self._kernel.clock(),
            timeout=self._kernel.config.deadlines.checkpoint,
            source=source,
        )

    async def list(self, session: str | None, limit: int) -> list[CheckpointInfo]:
        user = self._ingest.scope().need_user()
        count = checked_limit(limit)
        return await self._kernel.gate_worker.run(lambda: self._kernel.gate.list(user=user, session=session, limit=count))

    async def restore(self, id: str, attempt: int | None, full: bool) -> Restored:
        user = self._ingest.scope().need_user()
        return await self._kernel.gate_worker.run(lambda: self._kernel.gate.restore(id, user=user, attempt=attempt, full=full))

    async def verify(self, id: str | None) -> Verification:
        user = self._ingest.scope().need_user()
        return await self._kernel.gate_worker.run(lambda: self._kernel.gate.verify(id, user=user))
