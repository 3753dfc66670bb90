"""Replay: the whole log to one backend, in order, from where the last replay to it stopped.  No runtime is open meanwhile.

How far it is stands in the log, after each batch that the backend has taken; so a killed replay goes on there, and what the backend got
twice it knows by its event id.
"""

from __future__ import annotations

import fcntl
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import attrs
import trio

from memoryd.core import Backend, Config, Cursor, Entry, Outcome, RetryPolicy, Value, backoff
from memoryd.errors import (
    BackendError,
    BackendPermanent,
    BackendTransient,
    ConfigError,
    InvalidInput,
    StoreLocked,
)
from memoryd.journal import Erasures, Journal, Outbox
from memoryd.runtime._kernel import now_micros, open_journal
from memoryd.runtime._members import backend_context
from memoryd.runtime._plugins import make_backend
from memoryd.store import ProfileStore, open_profile, os_errors

__all__ = ["Replayed", "replay"]

Told = Callable[[int, int], None]

_TRIES = 6  # in a row without any progress
_CALL_DEADLINE = 60.0
_LOCK_DEADLINE = 10.0


@attrs.frozen(slots=True, eq=False, repr=False)
class Replayed(Value):
    """What a replay did: events ``first`` to ``last`` of the log went to ``to``; ``refused`` of them are dead letters.

    With ``dry_run`` it is what it would do, and ``sent`` counts the events that wait.
    """

    to: str
    first: int
    last: int
    sent: int
    refused: int = 0
    dry_run: bool = False


async def replay(
    home: Path, profile: str, config: Config, to: str, *, from_seq: int | None = None, dry_run: bool = False,
    on_progress: Told = lambda done, total: None,
) -> Replayed:  # fmt: skip
    """Send the log of ``profile`` to the backend ``to``, from event ``from_seq`` or from where the last replay stopped.

    What was forgotten is sent as such, without its words.  A ``dry_run`` asks nobody and changes nothing.
    Raises :class:`BackendTransient` where the backend cannot be reached: the same call goes on from there.
    """
    if config.backend == "null":
        raise ConfigError('replay: backend = "null" turns capture off, so that there is no log')
    store = await trio.to_thread.run_sync(open_profile, home, profile)
    backend = await trio.to_thread.run_sync(partial(make_backend, backend_context(to, store, config), home))
    if not backend.info.capabilities:
        raise ConfigError(f'replay: "{to}" keeps nothing')
    with _alone(store):
        journal = await trio.to_thread.run_sync(open_journal, store, config, None)
        try:
            await trio.to_thread.run_sync(journal.ingest_spool)
            return await _Replay(to, backend, journal, config, on_progress).run(from_seq, dry_run)
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(journal.close)


@contextmanager
def _alone(store: ProfileStore) -> Iterator[None]:
    """One replay at a time in a profile; the lock goes with the process."""
    path = store.directory / "replay.lock"
    with os_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreLocked(f"{path}: another replay of this profile runs; wait for it, or end it", path=str(path)) from None
        yield
    finally:
        os.close(descriptor)


class _Replay:
    """One replay.  ``_at`` is the last event that the backend has."""

    def __init__(self, to: str, backend: Backend, journal: Journal, config: Config, told: Told) -> None:
        self._to = to
        self._backend = backend
        self._journal = journal
        self._outbox = Outbox(journal)
        self._erasures = Erasures(journal)
        self._delivery = config.delivery
        self._policy = RetryPolicy(first=config.delivery.backoff_min, cap=config.delivery.backoff_max)
        self._told = told
        self._cursor_name = f"replay to {to}"
        self._at = 0
        self._sent = self._refused = 0

    async def run(self, from_seq: int | None, dry_run: bool) -> Replayed:
        head = self._journal.head().seq
        if from_seq is not None and from_seq > head + 1:
            raise InvalidInput("from-seq", f"the log ends at {head}")
        self._at = self._outbox.cursor(self._cursor_name).seq if from_seq is None else from_seq - 1
        if dry_run:
            return Replayed(self._to, self._at + 1, head, max(0, head - self._at), dry_run=True)
        try:
            return await self._send_all(from_seq)
        finally:
            with trio.move_on_after(_LOCK_DEADLINE, shield=True):
                await self._backend.aclose()

    async def _send_all(self, from_seq: int | None) -> Replayed:
        await self._open()
        own = await self._backend.position()
        if own is not None:
            self._at = own.seq if own.epoch == self._journal.epoch else 0
        elif from_seq is not None:
            await self._keep(self._cursor_name)
        first = self._at + 1
        while entries := await trio.to_thread.run_sync(self._read):
            await self._send(entries)
            self._told(self._at, max(self._at, self._journal.head().seq))
        if own is None:
            await self._hand_over(first)
        return Replayed(self._to, first, self._at, self._sent, self._refused)

    async def _open(self) -> None:
        try:
            with trio.fail_after(_CALL_DEADLINE):
                await self._backend.open()
        except trio.TooSlowError:
            raise BackendTransient(f"{self._to}: cannot be opened within {_CALL_DEADLINE:g} s") from None

    async def _hand_over(self, first: int) -> None:
        """Where the backend has all from the beginning, delivery to it need not begin again when it is configured."""
        delivered = self._outbox.cursor(self._to).seq
        if first - 1 <= delivered < self._at:
            await self._keep(self._to)

    def _read(self) -> list[Entry]:
        return self._erasures.read(self._at, self._delivery.batch_events, self._delivery.batch_bytes)

    # -- sending ------------------------------------------------------------------------------------------------------------

    async def _send(self, entries: Sequence[Entry]) -> None:
        """All of ``entries``, with patience."""
        tries = 0
        while entries:
            settled, problem = await self._attempt(entries)
            if settled:
                entries, tries = entries[settled:], 0
                await self._keep(self._cursor_name)
            if problem is None:
                continue
            tries += 1
            if tries == _TRIES:
                raise BackendTransient(f"replay stopped before event {entries[0].seq}, the same command goes on from there: {problem}")
            retry_after = problem.retry_after if isinstance(problem, BackendTransient) else None
            await trio.sleep(backoff(self._policy, tries, random.random(), retry_after))

    async def _attempt(self, entries: Sequence[Entry]) -> tuple[int, Exception | None]:
        """One call: how many entries are settled, and why not more.  A permanent refusal of several is narrowed down by halves."""
        try:
            with trio.fail_after(_CALL_DEADLINE):
                outcomes = await self._backend.apply(entries)
        except trio.TooSlowError:
            return 0, BackendTransient(f"{self._to}: no answer within {_CALL_DEADLINE:g} s")
        except BackendPermanent as error:
            if len(entries) > 1:
                return await self._attempt(entries[: len(entries) // 2])
            outcomes = [Outcome("permanent", type(error.__cause__ or error).__name__)]
        except BackendError as error:
            return 0, error
        return await self._settle(entries, outcomes)

    async def _settle(self, entries: Sequence[Entry], outcomes: Sequence[Outcome]) -> tuple[int, Exception | None]:
        count = 0
        for entry, outcome in zip(entries, outcomes, strict=True):
            match outcome.kind:
                case "ok":
                    self._sent += 1
                case "permanent":
                    self._refused += 1
                    await self._patiently(partial(self._outbox.bury, self._to, entry.seq, outcome.reason, now_micros()))
                case _:
                    return count, BackendTransient(f"{self._to}: {outcome.reason or outcome.kind}", retry_after=outcome.retry_after)
            self._at = entry.seq
            count += 1
        return count, None

    # -- the log ------------------------------------------------------------------------------------------------------------

    async def _keep(self, name: str) -> None:
        await self._patiently(partial(self._outbox.advance, name, Cursor(self._journal.epoch, self._at)))

    async def _patiently(self, write: Callable[[], None]) -> None:
        """A small write beside other processes that append: tried until the log's lock is free."""
        started = trio.current_time()
        while True:
            try:
                return write()
            except StoreLocked:
                if trio.current_time() - started > _LOCK_DEADLINE:
                    raise
            await trio.sleep(0.02)
