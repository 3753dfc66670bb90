"""Forget: a tombstone in the log, then every file in turn.  Each step may be repeated; what is left goes on at the next open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import attrs
import trio

from memoryd.checkpoint import Erasure
from memoryd.core import Forget, Forgotten, Scope, Selection, Selector, Turn, new_event_id
from memoryd.errors import BackendError, DeadlineExceeded, StoreError
from memoryd.journal import ErasePlan, Erasures, PendingErasure
from memoryd.recall import clear_spill
from memoryd.runtime._exports import known_backups, known_exports
from memoryd.runtime._kernel import Kernel

__all__ = ["Forgetting"]


@attrs.frozen(slots=True, eq=False, repr=False)
class _Archive:
    """What the archive erased, and where it found the same words elsewhere."""

    erased: int
    quoted: int


class Forgetting:
    """``forget`` erases now what it can; ``resume`` finishes what an earlier run left."""

    def __init__(self, kernel: Kernel, forget_slots: Callable[[], None]) -> None:
        self._kernel = kernel
        self._forget_slots = forget_slots
        self._busy = trio.Lock()

    async def forget(self, scope: Scope, selector: Selector, timeout: float) -> Forgotten:
        """Erase what ``selector`` means.  ``pending`` counts forgets that are not through yet."""
        erasures = self._kernel.erasures
        if self._kernel.journal_problem is not None:
            raise self._kernel.journal_problem
        if erasures is None:
            return await self._archive_only(selector)
        async with self._busy:
            selection = await self._select(erasures, selector, timeout)
            plan = await self._kernel.gate_worker.run(self._plan, selection)
            event = Forget(new_event_id(), scope, self._kernel.clock(), selection.seqs, selection.sessions)
            own = await self._kernel.sync_worker.run(self._begin, erasures, event, plan)
            self._kernel.bells.appended()
            erased, quoted, pending = await self._finish_all(erasures, timeout, own)
        gone = len(selection.entries) + erased
        return Forgotten(gone, pending, selection.quoted + quoted, self._beyond(copies=bool(gone or pending)))

    def _begin(self, erasures: Erasures, event: Forget, plan: ErasePlan) -> int:
        """Write the forget down and clear the log, before anything that an earlier forget may be waiting for."""
        seq = erasures.begin(event, plan).seq or 0
        try:
            erasures.clear(PendingErasure(seq, event.targets, plan))
        except StoreError as error:
            self._kernel.log.warning("forget.pending", error=type(error).__name__)
        return seq

    async def _select(self, erasures: Erasures, selector: Selector, timeout: float) -> Selection:
        """The scan of the log, which a deadline may leave behind: nothing is erased yet."""
        try:
            with trio.fail_after(timeout):
                return await self._kernel.sync_worker.run(erasures.select, selector, abandon=True)
        except trio.TooSlowError:
            raise DeadlineExceeded(f"the log could not be searched within {timeout:g} s: nothing was erased") from None

    def _beyond(self, *, copies: bool) -> tuple[str, ...]:
        """Files that memoryd knows and does not reach into: ``copies`` of what was erased, and those that nobody could look into."""
        directory = self._kernel.profile.directory
        backups, exports = (known_backups(directory), known_exports(directory)) if copies else ([], [])
        damaged = sorted(directory.glob("spool/quarantine/*"))
        damaged += sorted(directory.parents[1].glob("hooks.quarantine/*"))  # of the whole home: nobody can read whose it is
        return (
            *(f"{path} is a backup from before and still holds what was in it; delete it when you can" for path in backups),
            *(f"{path} is an export from before and may hold what was to go; delete it when you can" for path in exports),
            *(f"{path} is damaged and may hold what was to go; delete it when you can" for path in damaged),
        )

    async def resume(self, timeout: float) -> int:
        """Go on with forgets of earlier runs; returns how many are still pending."""
        erasures = self._kernel.erasures
        if erasures is None:
            return 0
        async with self._busy:
            return (await self._finish_all(erasures, timeout, own=0))[2]

    async def _finish_all(self, erasures: Erasures, timeout: float, own: int) -> tuple[int, int, int]:
        """Every pending erasure, oldest first: (archive rows erased by ``own``, places where its words are quoted, still pending)."""
        erased = quoted = left = 0
        with trio.move_on_after(timeout):
            try:
                pending = await self._kernel.sync_worker.run(erasures.pending)
            except StoreError as error:
                self._kernel.log.warning("forget.pending", error=type(error).__name__)
                return 0, 0, 1
            left = len(pending)
            for erasure in pending:
                archive = await self._erase(erasures, erasure, timeout)
                if archive is None:
                    continue
                left -= 1
                if erasure.seq == own:
                    erased, quoted = archive.erased, archive.quoted
        return erased, quoted, left

    async def _erase(self, erasures: Erasures, erasure: PendingErasure, timeout: float) -> _Archive | None:
        """One forget, whole; None where a part could not be done yet."""
        self._forget_slots()
        try:
            await self._kernel.sync_worker.run(erasures.clear, erasure)
            await self._kernel.sync_worker.run(clear_spill, self._kernel.profile.directory / "spill")
            archive = await self._kernel.gate_worker.run(self._erase_archive, erasure.plan)
            if not await self._erase_projection(erasure.seq, timeout) or archive is None:
                return None
            finished = await self._kernel.sync_worker.run(erasures.finish, erasure)
        except (BackendError, StoreError) as error:
            self._kernel.log.warning("forget.pending", error=type(error).__name__)
            return None
        return archive if finished else None

    def _erase_archive(self, plan: ErasePlan) -> _Archive | None:
        """On the gate's thread; None where a reader still pins old pages of the archive."""
        done = [self._kernel.gate.shelf.erase(erasure) for erasure in _erasures(plan)]
        if any(part.pending for part in done):
            return None
        return _Archive(sum(part.erased for part in done), sum(part.quoted for part in done))

    async def _erase_projection(self, seq: int, timeout: float) -> bool:
        history = self._kernel.history
        if history is None:
            return True
        member, backend = history
        if not await member.progress.reach(seq, timeout):
            return False
        await backend.erase_traces()
        return True

    def _plan(self, selection: Selection) -> ErasePlan:
        """What the archive has to erase, as identities: the words themselves are not kept."""
        selector, shelf = selection.selector, self._kernel.gate.shelf
        turns = [
            (entry.event.scope.session or "", shelf.identities_of_turn(entry.event.user, entry.event.assistant))
            for entry in selection.entries
            if isinstance(entry.event, Turn)
        ]
        return ErasePlan(selector.user, tuple(turns), selection.sessions, selector.everything, self._kernel.clock())

    async def _archive_only(self, selector: Selector) -> Forgotten:
        """Under the null backend there is no log: the archive alone is erased, by session or whole."""
        sessions = (selector.session,) if selector.whole_session and selector.session is not None else ()
        plan = ErasePlan(selector.user, (), sessions, selector.everything, self._kernel.clock())
        archive = await self._kernel.gate_worker.run(self._erase_archive, plan)
        return Forgotten(archive.erased, 0, archive.quoted) if archive is not None else Forgotten(pending=1)


def _erasures(plan: ErasePlan) -> Iterator[Erasure]:
    if plan.everything:
        yield Erasure(plan.user, until=plan.until)
        return
    for session in plan.sessions:
        yield Erasure(plan.user, session, until=plan.until)
    turns: defaultdict[str, list[tuple[bytes, ...]]] = defaultdict(list)
    for session, identities in plan.turns:
        if session not in plan.sessions:
            turns[session].append(identities)
    for session, found in turns.items():
        yield Erasure(plan.user, session, tuple(found), until=plan.until)
