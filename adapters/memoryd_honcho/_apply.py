"""One batch of events on its way to Honcho: turns gathered by thread, everything else at its place, one outcome each."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import attrs
import trio

from memoryd.core import OK, Deletion, Edit, Entry, Erased, Forget, MemoryWrite, Outcome, SessionMark, Turn
from memoryd.errors import BackendAmbiguous, BackendPermanent, BackendTransient, ScopeMissing
from memoryd_honcho._erase import Eraser
from memoryd_honcho._memories import Memories
from memoryd_honcho._send import Parcel, Sender, failed
from memoryd_honcho._threads import Threads
from memoryd_honcho._turns import TurnWriter

__all__ = ["Batch", "Parts"]

_WAITS = Outcome("transient", "waits")
Group = tuple[str, str | None]


@attrs.frozen(slots=True)
class Parts:
    """What a batch works with."""

    writer: TurnWriter
    threads: Threads
    sender: Sender
    memories: Memories
    eraser: Eraser
    settle: float


class Batch:
    """``look``: earlier tries of these events may have arrived."""

    def __init__(self, parts: Parts, entries: Sequence[Entry], *, look: bool) -> None:
        self._parts = parts
        self._entries = entries
        self._look = look
        self._outcomes = [_WAITS] * len(entries)
        self._parcels: dict[int, Parcel] = {}
        self._groups: dict[Group, list[Parcel]] = {}
        self._stopped = False

    async def run(self) -> list[Outcome]:
        """Apply in order, up to the first event that has to be tried again; what comes after it waits."""
        await trio.to_thread.run_sync(self._pack)
        for index, entry in enumerate(self._entries):
            if self._stopped:
                break
            await self._take(index, entry)
        await self._send_groups()
        return self._outcomes

    def _pack(self) -> None:
        """Make the messages of all turns: redaction takes its time."""
        for index, entry in enumerate(self._entries):
            if isinstance(entry.event, Turn) and entry.event.scope.user is not None:
                rows = self._parts.writer.rows(entry, entry.event)
                self._parcels[index] = Parcel(index, entry.event.event_id.hex(), rows)

    async def _take(self, index: int, entry: Entry) -> None:
        parts, event = self._parts, entry.event
        match event:
            case Turn():
                self._gather(index, event)
            case SessionMark() | Erased():
                self._outcomes[index] = OK
            case MemoryWrite():
                await self._do(index, lambda: parts.memories.write(entry, event))
            case Deletion():
                await self._do(index, lambda: parts.memories.delete(entry, event))
            case Edit():
                await self._after_turns(index, lambda: parts.eraser.edit(entry, event))
            case Forget():
                await self._after_turns(index, lambda: parts.eraser.forget(entry, event))

    def _gather(self, index: int, turn: Turn) -> None:
        parcel = self._parcels.get(index)
        if parcel is None or turn.scope.user is None:
            self._outcomes[index] = Outcome("permanent", ScopeMissing.__name__)
        else:
            self._groups.setdefault((turn.scope.user, turn.scope.session), []).append(parcel)

    async def _after_turns(self, index: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """What looks for turns needs those that came before it."""
        await self._send_groups()
        if not self._stopped:
            await self._do(index, work)

    async def _do(self, index: int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except (BackendPermanent, ScopeMissing) as error:
            self._outcomes[index] = Outcome("permanent", type(error.__cause__ or error).__name__)
        except (BackendTransient, BackendAmbiguous) as error:
            self._outcomes[index] = failed(error, self._parts.settle)
            self._stopped = True
        else:
            self._outcomes[index] = OK

    async def _send_groups(self) -> None:
        for (user, session), parcels in self._groups.items():
            try:
                thread = await self._parts.threads.need(user, session)
            except (BackendTransient, BackendAmbiguous) as error:
                outcomes = {parcel.index: failed(error, self._parts.settle) for parcel in parcels}
            else:
                outcomes = await self._parts.sender.send(thread, parcels, look=self._look)
            for index, outcome in outcomes.items():
                self._outcomes[index] = outcome
            if any(outcome.kind not in ("ok", "permanent") for outcome in outcomes.values()):
                self._stopped = True
                break
        self._groups.clear()
