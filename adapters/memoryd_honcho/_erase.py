"""Erasing and correcting.  Honcho deletes no message, only whole sessions: what stays is copied to a new generation, the old one ends.

The order makes an interruption harmless: what has to go is marked first, so that no search finds it; then the rest is copied, skipping
what an earlier try copied; then the anchor names the new generation; then the old one is deleted, which the server does when it can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import trio

from memoryd.core import Edit, Entry, Forget
from memoryd.errors import BackendError
from memoryd_honcho._client import Client, Message, Row
from memoryd_honcho._memories import Memories
from memoryd_honcho._send import batches
from memoryd_honcho._threads import Thread, Threads
from memoryd_honcho._turns import GONE, NS, TurnWriter, joined, marked_gone, place_of

__all__ = ["Eraser"]

_MARKS = 100  # places of the log in one filter
_AT_ONCE = 8  # threads that are asked at a time
Fields = dict[str, Any]


@attrs.frozen(slots=True)
class Eraser:
    """Applies what changes turns that are there.  A call may be cut off by its caller's deadline: the next one goes on from there."""

    client: Client
    threads: Threads
    memories: Memories
    writer: TurnWriter
    _clean: dict[str, set[str]] = attrs.field(factory=dict, init=False)

    async def forget(self, entry: Entry, forget: Forget) -> None:
        """Erase the events that ``forget`` names, and its sessions whole."""
        user = forget.scope.need_user()
        marks = frozenset(f"{entry.cursor.epoch}:{seq}" for seq in forget.targets)
        event = entry.event.event_id.hex()
        whole = {self.threads.anchor(user, name) for name in forget.sessions}
        threads = await self.threads.of_user(user)
        clean = self._clean.setdefault(event, set())
        for thread in threads:
            if thread.anchor in whole - clean:
                await self._rewrite(thread, event, lambda message: _is_before(message, entry))
                clean.add(thread.anchor)
        asked = [{"q": {"in": part}} for part in _parts(sorted(marks))]
        for thread in await self._holding(event, threads, asked):
            await self._rewrite(thread, event, lambda message: message.metadata.get("q") in marks)
            clean.add(thread.anchor)
        await self.memories.erase(user, marks)
        self._clean.pop(event, None)

    async def edit(self, entry: Entry, edit: Edit) -> None:
        """Replace texts of a turn.  One that is not there, or was forgotten, needs no correction."""
        user = edit.scope.need_user()
        target = edit.target.hex()
        event = edit.event_id.hex()
        for thread in await self._holding(event, await self.threads.of_user(user), [{"ev": target}]):
            messages = await self.client.messages(thread.session, {"metadata": {"ev": target}})
            rows = await trio.to_thread.run_sync(self._corrected, user, edit, messages)
            if rows is not None:
                await self._rewrite(thread, event, lambda message: message.metadata.get("ev") == target, rows)
            else:
                await self.threads.delete_old(thread)
        self._clean.pop(event, None)

    def _corrected(self, user: str, edit: Edit, messages: Sequence[Message]) -> list[Row] | None:
        """The messages of a turn as the edit wants them; a text that it does not give stays.  None for a turn that is so already."""
        if not messages:
            return None
        mark = _common(messages)
        texts = {"user": edit.user, "assistant": edit.assistant}
        rows: list[Row] = []
        for role, text in texts.items():
            kept = joined(messages, role)
            rows += self.writer.row_pieces(user, role, kept if text is None else text, mark)
        return None if [row.content for row in rows] == [message.content for message in messages] else rows

    # -- where it is ------------------------------------------------------------------------------------------------------------

    async def _holding(self, event: str, threads: Sequence[Thread], asked: Sequence[Fields]) -> list[Thread]:
        """The threads that hold a message with any of these fields, or have an old generation still.  Several are asked at a time, and
        those without are remembered for ``event``, so that a user with many sessions is not gone through from the start again."""
        clean = self._clean.setdefault(event, set())
        found: list[Thread] = []
        failures: list[BackendError] = []
        limit = trio.CapacityLimiter(_AT_ONCE)

        async def look(thread: Thread) -> None:
            async with limit:
                try:
                    holds = bool(thread.old) or await self._holds(thread, asked)
                except BackendError as error:
                    failures.append(error)
                    nursery.cancel_scope.cancel()
                    return
            if holds:
                found.append(thread)
            else:
                clean.add(thread.anchor)

        async with trio.open_nursery() as nursery:
            for thread in threads:
                if thread.anchor not in clean:
                    nursery.start_soon(look, thread)
        if failures:
            raise failures[0]
        return found

    async def _holds(self, thread: Thread, asked: Sequence[Fields]) -> bool:
        for fields in asked:
            if await self.client.messages(thread.session, {"metadata": fields}):
                return True
        return False

    # -- a new generation -------------------------------------------------------------------------------------------------------

    async def _rewrite(self, thread: Thread, event: str, goes: Callable[[Message], bool], instead: Sequence[Row] = ()) -> None:
        """Move what stays to the generation of ``event``; the first message that goes is replaced by ``instead``."""
        messages = [message for message in await self.client.messages(thread.session) if place_of(message.metadata)]
        going = [message for message in messages if goes(message)]
        if going:
            generation = thread.next_generation(event)
            await self._replace(thread, generation, messages, going, instead)
            thread = attrs.evolve(thread, generation=generation, old=(*thread.old, thread.generation))
            await self.threads.save(thread)
        await self.threads.delete_old(thread)

    async def _replace(
        self, thread: Thread, generation: str, messages: Sequence[Message], going: Sequence[Message], instead: Sequence[Row]
    ) -> None:
        mark = partial(self._mark_gone, thread, going)
        if not instead:
            await mark()
        gone = {message.id for message in going}
        rows: list[Row] = []
        for message in messages:
            if message.id not in gone:
                rows.append(Row(message.peer, message.content, message.metadata, message.at))
            elif message.id == going[0].id:
                rows += instead
        await self._copy(thread.session_of(generation), rows)
        if instead:
            await mark()  # a correction needs the old texts until the new ones are there

    async def _mark_gone(self, thread: Thread, messages: Sequence[Message]) -> None:
        for message in messages:
            if message.metadata.get("ns") != GONE:
                await self.client.mark_message(thread.session, message.id, marked_gone(message.metadata))

    async def _copy(self, session: str, rows: Sequence[Row]) -> None:
        there = {place_of(message.metadata) for message in await self.client.messages(session)}
        fresh: list[Row] = []
        for row in rows:
            place = place_of(row.metadata)
            if place not in there:
                fresh.append(row)
                there.add(place)
        for batch in batches(fresh):
            await self.client.add_messages(session, batch)


def _parts(marks: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(marks), _MARKS):
        yield list(marks[start : start + _MARKS])


def _is_before(message: Message, entry: Entry) -> bool:
    """Whether a message was there when its session was forgotten: a repeated *forget* must spare what came after it."""
    epoch, _, seq = str(message.metadata.get("q")).rpartition(":")
    return epoch != entry.cursor.epoch or not seq.isdigit() or int(seq) < entry.seq


def _common(messages: Sequence[Message]) -> dict[str, object]:
    """What the metadata of all messages of a turn says, whatever was marked as gone already."""
    best = max(messages, key=lambda message: len(message.metadata))
    return {"at": 0, **best.metadata, "ns": NS}
