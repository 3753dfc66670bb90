"""Recall from Honcho: its search over messages, its conclusions, and what it holds of the peer and the session, as hits."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import trio

from memoryd.core import Hit, Memory, Query, Redactor, from_micros, to_micros
from memoryd.errors import BackendError
from memoryd_honcho._client import Client, Message, Written
from memoryd_honcho._memories import Memories
from memoryd_honcho._names import Names
from memoryd_honcho._threads import Thread, Threads
from memoryd_honcho._turns import NS, joined, place_of
from memoryd_honcho._wire import escape, unescape

__all__ = ["Recaller"]

_MOST = 100  # results of one search, by the server's rule
_QUERY = 2000  # characters of a query that are sent
_GRACE = 0.25  # seconds that facts and context may take beyond the search
_FLAT = 60  # how little the first places of two rankings differ: the usual constant of reciprocal ranks
_WORD = re.compile(r"\w{3,}")


@attrs.define(slots=True)
class _Found:
    """What the parts of a recall brought."""

    messages: list[Message] = attrs.field(factory=list)
    facts: list[Written] = attrs.field(factory=list)
    memories: Mapping[str, Memory] = attrs.field(factory=dict)
    context: list[Hit] = attrs.field(factory=list)


@attrs.frozen(slots=True)
class Recaller:
    """Answers queries.  The search over messages must answer; facts and context come where they can."""

    name: str
    client: Client
    names: Names
    threads: Threads
    memories: Memories
    redact: Redactor

    async def recall(self, query: Query) -> list[Hit]:
        """At most ``query.limit`` hits, an event at most once, best first."""
        if not query.limit or not _says_something(query.text):
            return []
        thread = await self.threads.find(query.user, query.session) if query.session is not None else None
        if query.session is not None and thread is None:
            return []
        text = await trio.to_thread.run_sync(self._wire_text, query.text)
        found = await self._find(query, text, thread)
        return await self._hits(query, found)

    async def _find(self, query: Query, text: str, thread: Thread | None) -> _Found:
        found = _Found()
        failure: BackendError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_if_possible, self._find_facts, query, text, found)
            nursery.start_soon(_if_possible, self._find_context, query, thread, found)
            try:
                found.messages = await self._search(query, text, thread)
                nursery.cancel_scope.deadline = trio.current_time() + _GRACE
            except BackendError as error:
                failure = error
                nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return found

    def _wire_text(self, text: str) -> str:
        return escape(self.redact(text[:_QUERY]))

    # -- asking -----------------------------------------------------------------------------------------------------------------

    async def _search(self, query: Query, text: str, thread: Thread | None) -> list[Message]:
        fields = {"ns": NS, "u": self.names.user(query.user), **self.names.labels(query.labels)}
        most = min(_MOST, 3 * query.limit + 10)  # pieces and copies fold
        return await self.client.search(text, {"metadata": fields}, most, None if thread is None else thread.session)

    async def _find_facts(self, query: Query, text: str, found: _Found) -> None:
        """Conclusions have no time of their own in the past, no session of the user's and no labels: such queries do without."""
        if query.as_of is not None or query.session is not None or query.labels:
            return
        peer = self.names.peer(query.user)
        facts = await self.client.find_conclusions(peer, text, min(_MOST, query.limit + 10))
        beside = dict.fromkeys(fact.session for fact in facts if fact.session and fact.session.startswith("kv-"))
        found.memories = await self.memories.beside(query.user, list(beside))
        found.facts = facts

    async def _find_context(self, query: Query, thread: Thread | None, found: _Found) -> None:
        """What the server keeps ready, where it shares a word with the query: it is ranked by nothing."""
        if query.as_of is not None:
            return
        if thread is not None:
            summary = await self.client.summary(thread.session)
            if summary is not None and _share_a_word(summary[0], query.text):
                found.context.append(self._hit(f"{thread.session}:summary", "memory", summary[0], 0.0, to_micros(summary[1]), "summary"))
        elif not query.labels:
            peer = self.names.peer(query.user)
            lines = [line for line in await self.client.card(peer) if _share_a_word(line, query.text)]
            found.context += [self._hit(f"{peer}:card:{at}", "memory", line, 0.0, 0, "card") for at, line in enumerate(lines)]

    # -- hits -------------------------------------------------------------------------------------------------------------------

    async def _hits(self, query: Query, found: _Found) -> list[Hit]:
        hits = [*self._turn_hits(query, found.messages), *self._fact_hits(found)]
        best = sorted(hits, key=lambda hit: -hit.score)[: query.limit]
        whole = [await self._whole(hit, found.messages) if hit.kind == "turn" else hit for hit in best]
        return [*whole, *found.context][: query.limit]

    def _turn_hits(self, query: Query, messages: Sequence[Message]) -> Iterator[Hit]:
        mine = self.names.user(query.user)
        seen: set[str] = set()
        for rank, message in enumerate(messages):
            fields = message.metadata
            place = place_of(fields)
            if place is None or fields.get("ns") != NS or fields.get("u") != mine or place.event in seen:
                continue
            if query.as_of is not None and int(fields.get("at", 0)) > query.as_of:
                continue
            seen.add(place.event)
            yield self._turn_hit(place.event, place.role, rank, message)

    def _turn_hit(self, event: str, role: str, rank: int, message: Message) -> Hit:
        fields = message.metadata
        session, seq = fields.get("s"), str(fields.get("q", "")).rpartition(":")[2]
        hit = self._hit(event, "turn", unescape(message.content), _score(rank), int(fields.get("at", 0)), "turn")
        return attrs.evolve(
            hit, role=role, session=unescape(session) if isinstance(session, str) else None,
            seq=int(seq) if seq.isdigit() else None, why={"rank": float(rank + 1)},
        )  # fmt: skip

    def _fact_hits(self, found: _Found) -> Iterator[Hit]:
        """A conclusion beside a memory stands for the memory as it is now; others are what the server concluded."""
        seen: set[str] = set()
        for rank, fact in enumerate(found.facts):
            memory = found.memories.get(fact.session or "")
            if memory is not None and memory.id not in seen:
                seen.add(memory.id)
                hit = self._hit(memory.id, "memory", memory.value, _score(rank), to_micros(memory.updated_at), "memory")
                yield attrs.evolve(hit, key=memory.key, why={"rank": float(rank + 1)})
            elif not (fact.session or "").startswith("kv-"):
                yield self._hit(fact.id, "memory", unescape(fact.content), _score(rank), to_micros(fact.at), "conclusion")

    async def _whole(self, hit: Hit, messages: Sequence[Message]) -> Hit:
        """A text that was cut is read whole; where that fails its piece has to do."""
        message = next(one for one in messages if (place := place_of(one.metadata)) and place.event == hit.id)
        if message.metadata.get("n") == 1:
            return hit
        try:
            every = await self.client.messages(message.session, {"metadata": {"ns": NS, "ev": hit.id}})
        except BackendError:
            return hit
        return attrs.evolve(hit, text=joined(every, hit.role or "user"))

    def _hit(self, id: str, kind: Any, text: str, score: float, at: int, place: str) -> Hit:
        return Hit(id=id, kind=kind, text=text, score=score, at=from_micros(at), source=f"{self.name}:{place}")


async def _if_possible(find: Callable[..., Awaitable[None]], *arguments: object) -> None:
    try:
        await find(*arguments)
    except BackendError:
        return  # the answer is then what the others found


def _score(rank: int) -> float:
    return 1.0 / (_FLAT + rank + 1)


def _says_something(text: str) -> bool:
    """Whether there is anything to look for: a letter, a digit, a symbol, not only punctuation and spaces."""
    return any(unicodedata.category(char)[0] in "LNS" for char in text)


def _share_a_word(text: str, query: str) -> bool:
    return not set(_WORD.findall(text.casefold())).isdisjoint(_WORD.findall(query.casefold()))
