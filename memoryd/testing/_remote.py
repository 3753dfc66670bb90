"""A remote backend in memory with a plan of faults: what a memory service on a network does to a runtime on its bad days.

::

    remote = FakeRemote(plan=[RemoteFault("transient"), RemoteFault("applied")])
    with registered("fake", lambda context: remote):
        async with memoryd.open_runtime(home, config={"mirrors": ["fake"]}) as rt:
            ...             # the first batch is refused, the second arrives but its answer is lost
    assert [turn.user for turn in remote.turns] == [...]     # what a reader sees: each event once, in order
    assert len(remote.received) > len(remote.turns)          # what was sent
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NoReturn

import attrs
import trio

from memoryd.core import (
    Availability,
    BackendInfo,
    Cursor,
    Deletion,
    Entry,
    Erased,
    Event,
    Forget,
    Health,
    Hit,
    Memory,
    MemoryWrite,
    Outcome,
    Query,
    Turn,
    from_micros,
)
from memoryd.errors import BackendAmbiguous, BackendPermanent, BackendTransient

__all__ = ["FakeRemote", "RemoteFault"]

FaultName = Literal["transient", "permanent", "lost", "applied", "slow", "hang", "gap", "bug"]
OK = Outcome("ok")


@attrs.frozen(slots=True)
class RemoteFault:
    """One bad answer.

    *transient*: refused, try again (``seconds`` is the server's ``retry_after``, 0 none).  *permanent*: the whole call is refused for
    good.  *lost*: ambiguous, nothing was applied.  *applied*: ambiguous, all was.  *slow*: right, after ``seconds``.  *hang*: no answer
    at all.  *gap*: the answer says that earlier events are missing.  *bug*: an error that no adapter may raise.
    """

    name: FaultName
    seconds: float = 0.0


class FakeRemote:
    """A :class:`~memoryd.core.Backend` whose cursor the log keeps.

    ``plan`` is used up, one fault a call of ``apply``; then calls succeed.  ``outage`` is met by every call, reads and ``open`` too,
    until it is set to None again.  ``rejects(event)`` True: that event alone is refused for good.  ``poisons(event)`` True: every batch
    that holds the event is refused whole, so that only bisecting finds it.  All four may be changed at any time.
    """

    def __init__(
        self,
        name: str = "fake",
        *,
        plan: Iterable[RemoteFault] = (),
        outage: RemoteFault | None = None,
        rejects: Callable[[Event], bool] = lambda event: False,
        poisons: Callable[[Event], bool] = lambda event: False,
    ) -> None:
        self.name = name
        self.plan = deque(plan)
        self.outage = outage
        self.rejects = rejects
        self.poisons = poisons
        self.opens = 0
        """How often ``open`` was called."""
        self.calls = 0
        """How often ``apply`` was called."""
        self.received: list[Entry] = []
        """Every entry that was applied, in the order of arrival, repeats included."""
        self._kept: dict[bytes, Entry] = {}

    @property
    def entries(self) -> list[Entry]:
        """What a reader sees: each event once, in the order of the log, without what was forgotten."""
        return sorted(self._kept.values(), key=lambda entry: entry.seq)

    @property
    def turns(self) -> list[Turn]:
        """The turns among :attr:`entries`."""
        return [entry.event for entry in self.entries if isinstance(entry.event, Turn)]

    # -- the port ---------------------------------------------------------------------------------------------------------------

    @property
    def info(self) -> BackendInfo:
        return BackendInfo(
            name=self.name, label=f"{self.name} (in memory)", is_cloud=True, data_location="this process", requires_api_key=False,
            capabilities=frozenset({"turns", "memories", "recall", "query", "list", "delete", "forget"}),
        )  # fmt: skip

    def is_available(self) -> Availability:
        return Availability(True)

    async def open(self) -> None:
        self.opens += 1
        await self._meet(self.outage)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    async def health(self) -> Health:
        try:
            await self._meet(self.outage)
        except (BackendTransient, BackendPermanent, BackendAmbiguous) as error:
            return Health(False, str(error))
        return Health(True)

    async def position(self) -> Cursor | None:
        return None

    async def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        self.calls += 1
        fault = self.outage or (self.plan.popleft() if self.plan else None)
        if fault is not None and fault.name == "applied":
            self._settle(entries)
        await self._meet(fault)
        if any(self.poisons(entry.event) for entry in entries):
            raise BackendPermanent(f"{self.name}: the batch holds an event that is not accepted")
        if fault is not None and fault.name == "gap":
            return [Outcome("gap", "gap") for _ in entries]
        return self._settle(entries)

    async def recall(self, query: Query) -> list[Hit]:
        """Turns that hold a word of the query, newest first."""
        await self._meet(self.outage)
        words = query.text.casefold().split()
        found = [
            entry for entry in reversed(self.entries)
            if isinstance(turn := entry.event, Turn) and turn.scope.user == query.user and query.session in (None, turn.scope.session)
            and any(word in f"{turn.user} {turn.assistant}".casefold() for word in words)
        ]  # fmt: skip
        return [self._hit(entry, entry.event) for entry in found[: query.limit] if isinstance(entry.event, Turn)]

    async def retrieve(self, user_id: str, key: str) -> Memory | None:
        return next((memory for memory in await self._memories(user_id) if memory.key == key), None)

    async def query(self, user_id: str, text: str, limit: int = 10) -> list[Memory]:
        wanted = text.casefold()
        found = [m for m in await self._memories(user_id) if wanted and (wanted in m.key.casefold() or wanted in m.value.casefold())]
        return found[:limit]

    async def list_keys(self, user_id: str) -> list[str]:
        return [memory.key for memory in await self._memories(user_id)]

    # -- how it works -----------------------------------------------------------------------------------------------------------

    async def _meet(self, fault: RemoteFault | None) -> None:
        await trio.lowlevel.checkpoint()
        if fault is None or fault.name == "gap":
            return
        if fault.name == "hang":
            await trio.sleep_forever()
        if fault.name != "slow":
            self._fail(fault)
        await trio.sleep(fault.seconds)

    def _fail(self, fault: RemoteFault) -> NoReturn:
        match fault.name:
            case "transient":
                raise BackendTransient(f"{self.name}: down", retry_after=fault.seconds or None)
            case "permanent":
                raise BackendPermanent(f"{self.name}: refused for good")
            case "lost" | "applied":
                raise BackendAmbiguous(f"{self.name}: no answer after sending")
            case _:
                raise ZeroDivisionError(f"{self.name}: a bug of the adapter")

    def _settle(self, entries: Sequence[Entry]) -> list[Outcome]:
        return [self._apply(entry) for entry in entries]

    def _apply(self, entry: Entry) -> Outcome:
        if self.rejects(entry.event):
            return Outcome("permanent", "rejected")
        self.received.append(entry)
        match entry.event:
            case Erased(event_id):
                self._kept.pop(event_id, None)
            case Forget(targets=targets):
                gone = set(targets)
                self._kept = {id: kept for id, kept in self._kept.items() if kept.seq not in gone}
            case event:
                self._kept.setdefault(event.event_id, entry)
        return OK

    async def _memories(self, user: str) -> list[Memory]:
        """As they are now, newest first; the order of the log decides, not that of arrival."""
        await self._meet(self.outage)
        found: dict[str, Memory] = {}
        for entry in self.entries:
            match entry.event:
                case MemoryWrite() as write if write.scope.user == user:
                    found[write.key] = self._memory(write, user, found.pop(write.key, None))
                case Deletion() as deletion if deletion.scope.user == user:
                    found.pop(deletion.key, None)
        return list(reversed(found.values()))

    def _memory(self, write: MemoryWrite, user: str, before: Memory | None) -> Memory:
        at = from_micros(write.at)
        id, created = (write.event_id.hex(), at) if before is None else (before.id, before.created_at)
        return Memory(id, write.key, write.value, user, write.type, created, at, write.metadata)

    def _hit(self, entry: Entry, turn: Turn) -> Hit:
        text = turn.user or turn.assistant
        return Hit(
            turn.event_id.hex(), "turn", text, 1.0, from_micros(turn.at), f"{self.name}:turn",
            seq=entry.seq, turn_id=turn.turn_id, session=turn.scope.session,
        )  # fmt: skip
