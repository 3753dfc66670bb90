"""Reading: recall, prefetch's lookup, keyed reads.  Local is always there; a remote primary answers first and has a deadline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import attrs
import trio

from memoryd.core import (
    Context,
    Deletion,
    Edit,
    Entry,
    Forget,
    HistoryBackend,
    Hit,
    Memory,
    MemoryVersion,
    MemoryWrite,
    Query,
    Recall,
    Scope,
    Turn,
    check_count,
    check_name,
    check_text,
    checked_limit,
    from_micros,
)
from memoryd.errors import BackendError, BackendTransient, DeadlineExceeded, InvalidInput, MemorydError, StoreError
from memoryd.recall import merge, render, scan_tail, spill, still_standing
from memoryd.runtime._ingest import event_time
from memoryd.runtime._kernel import Kernel, Member
from memoryd.runtime._members import REPAIR

__all__ = ["Reading"]

T = TypeVar("T")
Kinds: TypeAlias = tuple[type[MemoryWrite | Deletion | Forget | Turn | Edit], ...]
_MEMORY_EVENTS: Kinds = (MemoryWrite, Deletion, Forget)
_ALL_EVENTS: Kinds = (*_MEMORY_EVENTS, Turn, Edit)
_TAIL = 1024  # events that are scanned while the projection is behind
_TAIL_BYTES = 4 << 20


class Reading:
    """The reading half of a runtime.  Every method ends inside its own deadline."""

    def __init__(self, kernel: Kernel, marker: str) -> None:
        self._kernel = kernel
        self._marker = marker

    # -- recall -------------------------------------------------------------------------------------------------------------

    async def recall(self, scope: Scope, query: Query, timeout: float) -> Recall:
        """At most ``query.limit`` hits, best first; what could not be reached in time is said in ``behind`` and ``stale``."""
        history = self._kernel.history
        primary = self._kernel.primary
        if history is None or primary is None:
            return Recall(source="null")
        own = self._kernel.journal.last_seq if self._kernel.journal is not None else 0
        started = trio.current_time()
        if primary is not history[0] and query.as_of is None:  # only local knows what was valid when
            answered = await self._from_primary(primary, own, query, timeout * 0.6)
            if answered is not None:
                return answered
            return attrs.evolve(await self._from_local(*history, own, query, _left(started, timeout)), stale=True)
        return await self._from_local(*history, own, query, timeout)

    async def _from_primary(self, primary: Member, own: int, query: Query, timeout: float) -> Recall | None:
        """The remote primary's answer, or None where it is behind the caller's last write, slow or down."""
        if not primary.is_open or primary.progress.seq < own:
            return None
        try:
            with trio.fail_after(timeout):
                hits = await primary.backend.recall(query)
        except (BackendError, trio.TooSlowError) as error:
            primary.last_error = type(error).__name__
            return None
        except Exception as error:  # a bug of the adapter must not break the host's turn: local answers
            if self._kernel.on_bug == "raise":
                raise
            primary.last_error = type(error).__name__
            return None
        return Recall(tuple(hits[: query.limit]), source=primary.name)

    async def _from_local(self, member: Member, backend: HistoryBackend, own: int, query: Query, timeout: float) -> Recall:
        """The projection's answer, with the newest of what it does not have yet scanned from the log."""
        with trio.move_on_after(timeout):
            reached = await member.progress.reach(own, timeout * 0.4)
            hits = await self._projected(member, backend, query)
            if hits is not None and reached:
                return Recall(tuple(hits), source=member.name)
            known = member.progress.seq if hits is not None else 0
            tail = await self._tail(known, own)
            behind = max(0, own - known - len(tail))
            found = self._with_tail(hits or [], tail, query)
            source = member.name if hits is not None else "log" if tail else "none"
            return Recall(tuple(found), behind, stale=hits is None, source=source)
        return Recall(behind=max(0, own - member.progress.seq), stale=True, source="none")

    async def _projected(self, member: Member, backend: HistoryBackend, query: Query) -> list[Hit] | None:
        """None where the projection cannot answer; status says why."""
        if not member.is_open:
            return None
        try:
            hits = await backend.recall(query)
        except MemorydError as error:
            member.met(error)
            return None
        member.damaged = False
        return hits

    def _with_tail(self, hits: Sequence[Hit], tail: Sequence[Entry], query: Query) -> list[Hit]:
        standing = still_standing(hits, query.user, tail) if query.as_of is None else hits
        return merge([standing, scan_tail(tail, query, language=self._kernel.config.language)], query.limit)

    async def _tail(self, after: int, upto: int) -> Sequence[Entry]:
        """The newest events of the log between ``after`` and ``upto``: scanned, not indexed, and bounded."""
        journal = self._kernel.journal
        if journal is None:
            return []
        start = max(after, upto - _TAIL)
        try:
            return await self._kernel.read_worker.run(journal.read, start, _TAIL, _TAIL_BYTES, abandon=True)
        except StoreError:  # the answer then says how far it is behind
            return []

    async def context(self, scope: Scope, text: str, timeout: float, *, prefetched: bool = False) -> Context:
        """A recall rendered as the fenced block that a host injects."""
        query = Query(scope.need_user(), check_text("query", text))
        found = await self.recall(scope, query, timeout)
        limits = self._kernel.config.recall
        block = render(found.hits, marker=self._marker, budget=limits.budget_chars)
        if len(block) > limits.spill_chars:
            block = await self._spilled(block, found, limits.spill_chars)
        complete = found.behind == 0 and found.source != "none"
        return Context(text, block, found.hits, found.source, prefetched, complete)

    async def _spilled(self, block: str, found: Recall, limit: int) -> str:
        """The block's two ends and the path of the whole; a smaller block where the disk does not take it."""
        directory = self._kernel.profile.directory / "spill"
        try:
            return await self._kernel.read_worker.run(lambda: spill(block, directory, limit=limit))
        except StoreError:
            return render(found.hits, marker=self._marker, budget=limit)

    # -- keyed reads --------------------------------------------------------------------------------------------------------

    async def retrieve(self, scope: Scope, key: str) -> Memory | None:
        user = scope.need_user()
        check_name("key", key)
        return await self._ask("retrieve", None, user, lambda backend: backend.retrieve(user, key))

    async def query(self, scope: Scope, text: str, limit: int) -> list[Memory]:
        user = scope.need_user()
        count = checked_limit(limit)
        if not check_text("query", text) or not count:
            return []
        return await self._ask("query", [], user, lambda backend: backend.query(user, text, count))

    async def list_keys(self, scope: Scope) -> list[str]:
        user = scope.need_user()
        return await self._ask("retrieve", [], user, lambda backend: backend.list_keys(user))

    async def list_memories(self, scope: Scope, limit: int | None, offset: int) -> list[Memory]:
        user = scope.need_user()
        count = None if limit is None else checked_limit(limit)
        start = check_count("offset", offset)
        return await self._ask("retrieve", [], user, lambda backend: backend.list_memories(user, limit=count, offset=start))

    async def history(self, scope: Scope, key: str, as_of: object) -> list[MemoryVersion]:
        user = scope.need_user()
        check_name("key", key)
        moment = None if as_of is None else from_micros(event_time(as_of, 0, "as_of"))
        return await self._ask("retrieve", [], user, lambda backend: backend.history(user, key, as_of=moment))

    async def find(self, scope: Scope, id: str) -> Hit | None:
        user = scope.need_user()
        if not check_text("id", id):
            raise InvalidInput("id", "expected the id of a turn or a memory")
        return await self._ask("retrieve", None, user, lambda backend: backend.find(user, id), _ALL_EVENTS)

    async def _ask(
        self, deadline: str, nothing: T, user: str, ask: Callable[[HistoryBackend], Awaitable[T]], kinds: Kinds = _MEMORY_EVENTS
    ) -> T:
        """Ask local; raises :class:`DeadlineExceeded` rather than answer without an event of ``kinds`` that the log has already."""
        history = self._kernel.history
        if history is None:
            return nothing
        member, backend = history
        if not member.is_open:
            raise _unusable(member)
        timeout: float = getattr(self._kernel.config.deadlines, deadline)
        started = trio.current_time()
        try:
            with trio.fail_after(timeout):
                await self._has_all(member, user, kinds, timeout * 0.7)
            with trio.fail_after(_left(started, timeout)):
                found = await ask(backend)
        except trio.TooSlowError:
            raise DeadlineExceeded(f"memory did not answer within {timeout:g} s; see 'memoryd status'") from None
        except MemorydError as error:
            if not member.progress.blocked:
                member.met(error)
            raise
        member.damaged = False
        return found

    async def _has_all(self, member: Member, user: str, kinds: Kinds, timeout: float) -> None:
        """Wait until ``member`` has what the log has; what it lacks at the deadline may only be what does not matter here."""
        journal = self._kernel.journal
        if journal is None or await member.progress.reach(own := journal.last_seq, timeout):
            return
        missing = own - member.progress.seq
        tail = await self._tail(member.progress.seq, own)
        if len(tail) < missing or any(isinstance(entry.event, kinds) and entry.event.scope.user == user for entry in tail):
            raise _unusable(member) if member.progress.blocked else trio.TooSlowError


def _unusable(member: Member) -> BackendTransient:
    """Why local memory gives no answer now, and what to do about it."""
    if member.damaged:
        return BackendTransient(f"the memory of this profile is damaged ({member.last_error}): {REPAIR}")
    return BackendTransient(f"the memory of this profile cannot be opened ({member.last_error}): see 'memoryd status'")


def _left(started: float, timeout: float) -> float:
    return max(0.05, timeout - (trio.current_time() - started))


def make_query(
    scope: Scope, text: object, limit: object, as_of: object, session: str | None, labels: Mapping[str, str] | None
) -> Query:
    """A checked query of the scope's user; ``as_of`` takes what ``created_at`` takes."""
    moment = None if as_of is None else event_time(as_of, 0, "as_of")
    return Query(scope.need_user(), text, checked_limit(limit), moment, session, {} if labels is None else labels)
