"""Sending turns: batches in order, looked up first where an earlier try may have arrived, parted where one turn is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from memoryd.core import OK, Outcome
from memoryd.errors import BackendAmbiguous, BackendPermanent, BackendTransient
from memoryd_honcho._client import Client, Message, Row
from memoryd_honcho._errors import ServerFault
from memoryd_honcho._threads import Thread
from memoryd_honcho._turns import NS, Place, place_of

__all__ = ["Parcel", "Sender", "failed"]

_ROWS = 100  # messages in one call, by the server's rule
_CHARACTERS = 200_000  # in one call
_LOOKED_UP = 100  # turns in one filter
_PART_AFTER = 2  # refusals with 500 before a group is parted
_PATIENCE = 8  # refusals of one turn with 500, while all else works, before it counts as the turn's fault


@attrs.frozen(slots=True)
class Parcel:
    """A turn on its way: ``index`` is its place in the batch."""

    index: int
    event: str
    rows: Sequence[Row] = attrs.field(repr=False)


def failed(error: BackendTransient | BackendAmbiguous, settle: float) -> Outcome:
    """What is said of an event that has to be tried again; a write whose answer was lost gets time to arrive first."""
    name = type(error.__cause__ or error).__name__
    if isinstance(error, BackendAmbiguous):
        return Outcome("ambiguous", name, settle)
    return Outcome("transient", name, error.retry_after)


class Sender:
    """Writes the turns of one thread at a time.  ``settle``: seconds that a write without an answer may still take to arrive."""

    def __init__(self, client: Client, settle: float) -> None:
        self._client = client
        self._settle = settle
        self._refusals: dict[str, int] = {}

    async def send(self, thread: Thread, parcels: Sequence[Parcel], *, look: bool) -> dict[int, Outcome]:
        """One outcome for each parcel that was tried; after one that has to be tried again, none."""
        try:
            await self._write(thread, parcels, look)
        except BackendPermanent as error:
            if len(parcels) == 1:
                return {parcels[0].index: Outcome("permanent", type(error.__cause__ or error).__name__)}
            return await self._halves(thread, parcels)
        except ServerFault as error:
            return await self._after_fault(thread, parcels, error)
        except (BackendTransient, BackendAmbiguous) as error:
            return {parcel.index: failed(error, self._settle) for parcel in parcels}
        for parcel in parcels:
            self._refusals.pop(parcel.event, None)
        return {parcel.index: OK for parcel in parcels}

    async def _halves(self, thread: Thread, parcels: Sequence[Parcel]) -> dict[int, Outcome]:
        middle = len(parcels) // 2
        outcomes = await self.send(thread, parcels[:middle], look=True)
        if all(outcome.kind in ("ok", "permanent") for outcome in outcomes.values()):
            outcomes |= await self.send(thread, parcels[middle:], look=True)
        return outcomes

    async def _after_fault(self, thread: Thread, parcels: Sequence[Parcel], error: ServerFault) -> dict[int, Outcome]:
        """A 500 may be an outage, which concerns no event, or this input for ever, which must not hold up all others."""
        first = parcels[0].event
        refusals = self._refusals[first] = self._refusals.get(first, 0) + 1
        if len(parcels) > 1 and refusals >= _PART_AFTER and await self._answers():
            return await self._halves(thread, parcels)
        if len(parcels) == 1 and refusals >= _PATIENCE and await self._answers():
            del self._refusals[first]
            return {parcels[0].index: Outcome("permanent", type(error.__cause__ or error).__name__)}
        return {parcel.index: failed(error, self._settle) for parcel in parcels}

    async def _answers(self) -> bool:
        """Whether the server reads its database."""
        try:
            await self._client.sessions({"metadata": {"ns": NS}}, 1)
        except BackendTransient:
            return False
        return True

    # -- writing ----------------------------------------------------------------------------------------------------------------

    async def _write(self, thread: Thread, parcels: Sequence[Parcel], look: bool) -> None:
        there = await self._there(thread, parcels) if look else set[Place]()
        rows = [row for parcel in parcels for row in parcel.rows if place_of(row.metadata) not in there]
        for batch in batches(rows):
            await self._client.add_messages(thread.session, batch)

    async def _there(self, thread: Thread, parcels: Sequence[Parcel]) -> set[Place]:
        """The pieces that an earlier try wrote; copies are marked, and a place in another log is corrected."""
        marks = {parcel.event: parcel.rows[0].metadata["q"] for parcel in parcels if parcel.rows}
        there: set[Place] = set()
        for message in await self._look_up(thread, list(marks)):
            place = place_of(message.metadata)
            if place is None:
                continue
            wanted = {**message.metadata, "q": marks[place.event], **({"dup": True} if place in there else {})}
            if wanted != message.metadata:
                await self._client.mark_message(thread.session, message.id, wanted)
            there.add(place)
        return there

    async def _look_up(self, thread: Thread, events: Sequence[str]) -> list[Message]:
        found: list[Message] = []
        for start in range(0, len(events), _LOOKED_UP):
            asked = {"ns": NS, "ev": {"in": list(events[start : start + _LOOKED_UP])}}
            found += await self._client.messages(thread.session, {"metadata": asked})
        return found


def batches(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """``rows`` in calls that the server takes, in order."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        if batch and (len(batch) == _ROWS or size + len(row.content) > _CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += len(row.content)
    if batch:
        yield batch
