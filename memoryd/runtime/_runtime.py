"""The runtime as its users see it.  Plain methods return at once and may be called from any thread; async ones belong to its loop."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import trio

from memoryd.core import (
    Accepted,
    BackendInfo,
    CheckpointInfo,
    Config,
    Context,
    Drained,
    Forgotten,
    Hit,
    Memory,
    MemoryVersion,
    Recall,
    Receipt,
    Restored,
    Scope,
    Selector,
    Status,
    Stored,
    Verification,
    check_text,
    current_scope,
)
from memoryd.errors import BarrierFailed, InvalidInput, NotDurable, StoreError
from memoryd.journal import DeadLetter
from memoryd.runtime._checkpoint import Checkpoints
from memoryd.runtime._forget import Forgetting
from memoryd.runtime._ingest import Ingest, event_time
from memoryd.runtime._kernel import Kernel
from memoryd.runtime._prefetch import Prefetcher
from memoryd.runtime._read import Reading, make_query
from memoryd.runtime._status import read_status
from memoryd.runtime._supervise import Child

__all__ = ["Runtime"]

_PLACING = 0.5  # seconds to learn how far the projection was before


class Runtime:
    """An open memory of one profile.  Made by :func:`memoryd.open_runtime`; every call takes the scope of its context."""

    def __init__(self, kernel: Kernel, marker: str) -> None:
        self._kernel = kernel
        self._ingest = Ingest(kernel, marker)
        self._reading = Reading(kernel, marker)
        self._prefetcher = Prefetcher(kernel, self._lookup)
        self._forgetting = Forgetting(kernel, self._prefetcher.clear)
        self._checkpoints = Checkpoints(kernel, self._ingest)
        self.children: list[Child] = []

    @property
    def config(self) -> Config:
        return self._kernel.config

    @property
    def profile(self) -> str:
        """The profile's name."""
        return self._kernel.profile.name

    @property
    def home(self) -> Path:
        """The home below which the profile is."""
        return self._kernel.home

    @property
    def backend(self) -> BackendInfo:
        """What the primary backend says of itself."""
        primary = self._kernel.primary
        assert primary is not None, "every runtime has one"
        return primary.backend.info

    # -- writing ------------------------------------------------------------------------------------------------------------

    def sync_turn(
        self,
        user: str,
        assistant: str,
        *,
        messages: Sequence[Any] | None = None,
        turn_id: str | None = None,
        created_at: datetime | float | str | None = None,
    ) -> Accepted:
        """Accept one turn and return at once.  Plain call, safe from any thread; committed when the state is *journaled*.

        ``messages`` may be the host's whole list; only ids and kinds of parts of the last turn are taken from it.  ``turn_id`` is an
        idempotency key within (user, session).  ``created_at`` defaults to now.

        Raises :class:`InvalidInput`, :class:`ScopeMissing`, :class:`ScopeConflict`, :class:`JournalUnavailable`.
        """
        return self._ingest.turn(user, assistant, messages=messages, turn_id=turn_id, created_at=created_at)

    async def store(
        self, key: str, value: str, metadata: Mapping[str, Any] | None = None, *, created_at: datetime | float | str | None = None
    ) -> Stored:
        """Remember ``value`` under ``key`` for the scope's user; waits up to ``deadlines.store`` for the primary backend."""
        return await self._applied(self._ingest.store(key, value, metadata, created_at))

    async def delete(self, key: str) -> Stored:
        """Make ``key`` no longer current (its history stays until it is forgotten); a missing key is no error."""
        return await self._applied(self._ingest.delete(key))

    async def edit(self, id: str, value: str | None = None, *, user: str | None = None, assistant: str | None = None) -> Stored:
        """Correct a memory (``value``) or the texts of a turn (``user``, ``assistant``), keeping its id.

        Raises :class:`InvalidInput` where nothing has that id, or the parts do not fit what it is.
        """
        if value is not None and (user, assistant) != (None, None):
            raise InvalidInput("edit", "give the value of a memory, or the texts of a turn, not both")
        hit = await self._reading.find(self._ingest.scope(), id)
        if hit is None:
            raise InvalidInput("id", f"nothing of this user has the id {id[:64]!r}")
        if hit.kind == "memory":
            return await self._edit_memory(hit, value)
        if user is None and assistant is None:
            user, assistant = (value, None) if hit.role != "assistant" else (None, value)
        if user is None and assistant is None:
            raise InvalidInput("edit", "give the new text")
        if assistant == "" and (user == "" or (user is None and hit.role == "assistant")):
            raise InvalidInput("edit", "user and assistant would both be empty; forget erases a turn")
        return await self._applied(self._ingest.edit_turn(bytes.fromhex(hit.id), user, assistant))

    async def _edit_memory(self, hit: Hit, value: str | None) -> Stored:
        if value is None or hit.key is None:
            raise InvalidInput("value", "give the memory's new value")
        memory = await self._reading.retrieve(self._ingest.scope(), hit.key)
        metadata = dict(memory.metadata) if memory is not None else {}
        if memory is not None and memory.type != "preference":
            metadata.setdefault("type", memory.type)
        return await self._applied(self._ingest.store(hit.key, value, metadata))

    def mark_session(self, mark: str, data: Mapping[str, Any] | None = None) -> Accepted:
        """Note what happened to the scope's session: ``start``, ``end``, ``switch``, ``compaction``, ``branch``, ...  Plain call."""
        return self._ingest.mark(mark, data)

    async def _applied(self, accepted: Accepted) -> Stored:
        primary = self._kernel.primary
        if accepted.state == "off" or primary is None:
            return Stored(accepted, applied=False)
        timeout = self.config.deadlines.store
        started = trio.current_time()
        settled = await self.settled(accepted, timeout)
        left = timeout - (trio.current_time() - started)
        applied = settled.seq is not None and await primary.progress.reach(settled.seq, left)
        return Stored(settled, applied)

    async def settled(self, accepted: Accepted, timeout: float) -> Accepted:
        """Wait until a *held* event is *journaled*; what is still held at the deadline comes back as it is."""
        if not isinstance(accepted, Accepted):
            raise InvalidInput("accepted", f"expected what was accepted, got {type(accepted).__name__}")
        journal, seconds = self._kernel.journal, _timeout(timeout, 0.0)
        if accepted.state != "held" or journal is None:
            return accepted
        with trio.move_on_after(seconds):
            while True:
                seq = journal.settled(accepted.event_id)
                if seq is not None:
                    return Accepted("journaled", seq, accepted.event_id, accepted.reason)
                await trio.sleep(0.01)
        return accepted

    # -- reading ------------------------------------------------------------------------------------------------------------

    async def recall(
        self,
        query: str,
        limit: int = 10,
        as_of: datetime | float | str | None = None,
        session: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
    ) -> Recall:
        """Find turns and memories of the scope's user, best first, in all sessions unless ``session`` names one.

        ``as_of`` answers as of that time.  ``labels`` filters by agent, workspace or platform.  Ends within ``deadlines.recall``.
        """
        scope = self._ingest.scope()
        asked = make_query(scope, check_text("query", query), limit, as_of, session, labels)
        with self._kernel.stages["recall"].timed():
            return await self._reading.recall(scope, asked, self.config.deadlines.recall)

    def queue_prefetch(self, query: str) -> None:
        """Begin to recall for the next turn; the latest query of a session wins.  Plain call, safe from any thread."""
        scope = self._ingest.scope()
        scope.need_user()
        self._prefetcher.queue(check_text("query", query), scope)

    async def prefetch(self, query: str) -> Context:
        """The block to inject before the turn that asks ``query``: what was prefetched for exactly it, else a local recall; inside
        ``deadlines.prefetch``, and empty rather than late."""
        scope = self._ingest.scope()
        scope.need_user()
        check_text("query", query)
        with self._kernel.stages["prefetch"].timed():
            return await self._prefetch(query, scope)

    async def _prefetch(self, query: str, scope: Scope) -> Context:
        budget = self.config.deadlines.prefetch
        started = trio.current_time()
        ready = await self._prefetcher.get(query, scope, budget * 0.5)
        if ready is not None:
            return ready
        with trio.move_on_after(max(0.0, budget - (trio.current_time() - started))):
            return await self._reading.context(scope, query, budget * 0.5)
        return Context(query, "", complete=False)

    async def _lookup(self, query: str, timeout: float) -> Context:
        return await self._reading.context(current_scope(), query, timeout, prefetched=True)

    async def retrieve(self, key: str) -> Memory | None:
        """The memory under ``key`` as it is now, or None."""
        return await self._reading.retrieve(self._ingest.scope(), key)

    async def query(self, text: str, limit: int = 10) -> list[Memory]:
        """Memories whose key or value contains ``text`` (any case, no wildcards), newest first; an empty text finds nothing."""
        return await self._reading.query(self._ingest.scope(), text, limit)

    async def list_keys(self) -> list[str]:
        """The keys of the scope's user, newest first."""
        return await self._reading.list_keys(self._ingest.scope())

    async def list_memories(self, limit: int | None = None, offset: int = 0) -> list[Memory]:
        """The memories of the scope's user, newest first."""
        return await self._reading.list_memories(self._ingest.scope(), limit, offset)

    async def history(self, key: str, as_of: datetime | float | str | None = None) -> list[MemoryVersion]:
        """Every value that ``key`` had, newest first; with ``as_of`` the one that was valid then."""
        return await self._reading.history(self._ingest.scope(), key, as_of)

    async def find(self, id: str) -> Hit | None:
        """The turn or memory with that id, or None."""
        return await self._reading.find(self._ingest.scope(), id)

    # -- forgetting ---------------------------------------------------------------------------------------------------------

    async def forget(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        session: str | None = None,
        since: datetime | float | str | None = None,
        until: datetime | float | str | None = None,
        everything: bool = False,
    ) -> Forgotten:
        """Erase from every file: a turn or memory by id, a key, a session, a span of time (``until`` exclusive), or all of the user.

        Several parts narrow.  Ends within ``deadlines.drain``; what is pending goes on in the background and at the next open.
        """
        scope = self._ingest.scope()
        user = scope.need_user()
        if id is not None:
            hit = await self._reading.find(scope, id)
            id, key = (None, hit.key) if hit is not None and hit.kind == "memory" else (id, key)
        first = None if since is None else event_time(since, 0, "since")
        end = None if until is None else event_time(until, 0, "until")
        selector = Selector(user, _ids(id), key, session, first, end, everything)
        return await self._forgetting.forget(scope, selector, self.config.deadlines.drain)

    # -- durability ---------------------------------------------------------------------------------------------------------

    async def flush(self, timeout: float | None = None) -> None:
        """Journal what is held, then make everything accepted so far safe against power loss.  Raises :class:`NotDurable`."""
        self._kernel.check_open()
        journal = self._kernel.journal
        if journal is None and self._kernel.journal_problem is not None:
            raise NotDurable(f"the log cannot be opened: {self._kernel.journal_problem}")
        if journal is None:
            return
        seconds = _timeout(timeout, self.config.deadlines.flush)
        with trio.move_on_after(seconds):
            while await self._kernel.sync_worker.run(journal.retry_held):
                await trio.sleep(0.02)
            try:
                with self._kernel.stages["barrier"].timed():
                    await self._kernel.sync_worker.run(journal.barrier)
            except BarrierFailed as error:
                raise NotDurable(f"not safe against power loss: {error}") from error
            return
        raise NotDurable(f"not everything was written within {seconds:g} s: {journal.held} events are held; see 'memoryd status'")

    def last_flush(self) -> None:
        """At interpreter exit, from a plain thread: a barrier, and what is still held goes to ``spool/``.  Says nothing."""
        journal = self._kernel.journal
        if journal is None or self._kernel.pid != os.getpid():
            return
        deadline = time.monotonic() + self.config.deadlines.exit
        while journal.retry_held() and time.monotonic() < deadline:
            time.sleep(0.02)
        try:
            journal.spool_held()
            journal.barrier()
        except StoreError as error:
            self._kernel.log.error("exit.not_durable", error=type(error).__name__)

    async def drain(self, timeout: float | None = None) -> Drained:
        """Wait until the backends have everything accepted so far.  Whatever fails, says what was reached and raises nothing; only a
        ``timeout`` that is no number is :class:`InvalidInput`."""
        seconds = _timeout(timeout, self.config.deadlines.drain)
        journal = self._kernel.journal
        if journal is None:
            return Drained(local=self._kernel.is_null, remote=self._kernel.is_null)
        history = self._kernel.history
        local = history[0] if history is not None else None
        with trio.move_on_after(seconds):
            while journal.held:
                await trio.sleep(0.01)
            target = journal.last_seq
            for member in sorted(self._kernel.members, key=lambda member: member is not local):
                await member.progress.reach(target, math.inf)
        done = {member: not journal.held and member.progress.seq >= journal.last_seq for member in self._kernel.members}
        return Drained(
            local=all(done[member] for member in done if member is local),
            remote=all(done[member] for member in done if member is not local),
        )

    async def catch_up(self, timeout: float) -> int:
        """Project everything that any process has accepted; returns how many events are still behind at the deadline."""
        journal, history = self._kernel.journal, self._kernel.history
        if journal is None or history is None:
            return 0
        until = trio.current_time() + _timeout(timeout, 0.0)
        with trio.move_on_after(_PLACING):
            await history[0].progress.placed.wait()
        head = journal.head().seq
        if history[0].progress.seq < head:
            self._kernel.bells.appended()  # what another process appended rang no bell here
        await history[0].progress.reach(head, max(0.0, until - trio.current_time()))
        return max(0, head - history[0].progress.seq)

    # -- checkpoints --------------------------------------------------------------------------------------------------------

    async def checkpoint(
        self, messages: Sequence[Any] | None, *, host: str = "python", trigger: str = "manual", source: bytes | None = None
    ) -> Receipt:
        """Archive ``messages`` (the host's whole transcript) before a compaction.  Raises :class:`CheckpointBlocked`: do not compact.

        The receipt's verdict says what was done; *nothing-to-archive* for a private session or ``messages`` None.  ``source`` are the
        transcript's own bytes, kept for ``restore(full=True)``.
        """
        return await self._checkpoints.checkpoint(messages, host, trigger, source)

    async def checkpoints(self, session: str | None = None, limit: int = 100) -> list[CheckpointInfo]:
        """The checkpoints of the scope's user, newest first."""
        return await self._checkpoints.list(session, limit)

    async def checkpoint_info(self, id: str) -> CheckpointInfo:
        """One checkpoint of the scope's user with its attempts, by its id or a unique beginning of it (8 characters or more).

        Raises :class:`CheckpointNotFound`.
        """
        return await self._checkpoints.info(id)

    async def restore(self, id: str, *, attempt: int | None = None, full: bool = False) -> Restored:
        """The rows of a checkpoint as they were given.  Raises :class:`CheckpointNotFound`."""
        return await self._checkpoints.restore(id, attempt, full)

    async def verify(
        self, id: str | None = None, *, on_progress: Callable[[int, int], None] | None = None
    ) -> Verification:
        """Recompute every digest of one checkpoint, or of the whole archive.  ``on_progress(done, total)`` is called on a thread."""
        return await self._checkpoints.verify(id, on_progress)

    # -- the truth ----------------------------------------------------------------------------------------------------------

    async def status(self) -> Status:
        """The state of every part.  Never raises a store error."""
        self._kernel.check_open()
        return await read_status(self._kernel, self.children, self._prefetcher.waiting)

    def dead_letters(self) -> list[DeadLetter]:
        """Events that a backend refused for good.  Raises :class:`StoreError` where the log, which has them, cannot be opened."""
        self._kernel.check_open()
        if self._kernel.journal_problem is not None:
            raise self._kernel.journal_problem
        return self._kernel.outbox.dead() if self._kernel.outbox is not None else []

    @property
    def parts(self) -> tuple[Prefetcher, Forgetting]:
        """The parts that have a child of their own; for :mod:`memoryd.runtime` only."""
        return self._prefetcher, self._forgetting


def _timeout(given: object, default: float) -> float:
    if given is None:
        return default
    if not isinstance(given, int | float) or isinstance(given, bool) or not given >= 0:
        raise InvalidInput("timeout", "expected a number of seconds of at least 0")
    return float(given)


def _ids(id: str | None) -> frozenset[bytes] | None:
    if id is None:
        return None
    try:
        raw = bytes.fromhex(id)
    except ValueError:
        raw = b""
    if len(raw) != 16:  # also a beginning of an id: erasing nothing must not look like success
        raise InvalidInput("id", "expected the id of a turn or a memory (32 hexadecimal digits)")
    return frozenset({raw})

