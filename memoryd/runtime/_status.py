"""The truth about a runtime, gathered when asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import attrs

from memoryd import __version__
from memoryd.core import BackendStatus, GateStatus, LogStatus, State, Status, StoreStatus, TaskStatus, worst_state
from memoryd.errors import MemorydError, StoreError
from memoryd.runtime._kernel import Kernel, Member
from memoryd.runtime._limits import limit_notes
from memoryd.runtime._members import REPAIR
from memoryd.runtime._owner import read_owner
from memoryd.runtime._proof import Proof, prove_local, prove_log
from memoryd.runtime._supervise import Child
from memoryd.store import lock_readers, wal_path

__all__ = ["read_status"]

_RECEIPTS = 5
_PASSING = ("StoreLocked", "StoreFull")  # a log that refuses so now takes the next event, or says why it does not
_REFUSED = "mend the cause and compact again; 'memoryd gate status' says which, 'memoryd doctor' why"
_STORES: tuple[Literal["log", "memory", "archive"], ...] = ("log", "memory", "archive")


async def read_status(kernel: Kernel, children: Iterable[Child], asked: int) -> Status:
    """Every part's own state; the whole is the worst of them.  ``asked`` is how many prefetches wait.  Never raises a store error."""
    tasks = tuple(child.status() for child in children)
    log = None if kernel.is_null else await _log(kernel)
    head = log.head if log is not None else 0
    backends = [await _member_status(kernel, member, head) for member in kernel.members]
    gate = await kernel.archive_worker.run(_gate_status, kernel)
    stores = await kernel.read_worker.run(_store_statuses, kernel)
    states: list[State] = [member.state for member in backends]
    states += [log.state] if log is not None else []
    states += ["broken" for task in tasks if task.state == "failed"]
    states += [gate.state] if gate.state != "ok" else ["degraded"] if gate.warning else []
    return Status(
        state=worst_state(states),
        profile=kernel.profile.name,
        home=str(kernel.home),
        directory=str(kernel.profile.directory),
        log=log,
        backends=tuple(backends),
        gate=gate,
        tasks=tasks,
        notes=_notes(kernel, tasks, backends, gate, stores),
        stores=stores,
        stages=tuple(stage.status() for stage in kernel.stages.values()),
        queues=_queues(kernel, asked),
        pid=kernel.pid,
        version=__version__,
        opened_at=kernel.opened_at,
    )


def _queues(kernel: Kernel, asked: int) -> Mapping[str, int]:
    """What waits for each thread of the stores, and in memory."""
    threads = {worker.name.removeprefix("memoryd-"): worker.waiting for worker in kernel.workers}
    return {**threads, "held": kernel.journal.held if kernel.journal is not None else 0, "prefetch": asked}


def _store_statuses(kernel: Kernel) -> tuple[StoreStatus, ...]:
    paths = [(name, kernel.profile.directory / f"{name}.db") for name in _STORES]
    return tuple(_store_status(name, path, kernel.pid) for name, path in paths if path.exists())


def _store_status(name: Literal["log", "memory", "archive"], path: Path, own: int) -> StoreStatus:
    sizes, written = {}, 0
    for part in (path, wal_path(path)):
        try:
            found = part.stat()
        except OSError:  # it was removed meanwhile; the part that uses it says so
            continue
        sizes[part], written = found.st_size, max(written, found.st_mtime_ns)
    readers = tuple(pid for pid in lock_readers(path) if pid != own)
    return StoreStatus(name, str(path), sizes.get(path, 0), sizes.get(wal_path(path), 0), written // 1000 or None, readers)


async def _log(kernel: Kernel) -> LogStatus:
    """The log as it says of itself, and as a write finds it."""
    found = await kernel.sync_worker.run(_log_status, kernel)
    journal = kernel.journal
    if journal is None or found.state == "broken":
        return found
    proof = await kernel.proofs.get("log", lambda: kernel.sync_worker.run(prove_log, journal))
    if not proof.error:
        return found
    return attrs.evolve(found, state="degraded" if proof.error in _PASSING else "broken", last_error=proof.error)


def _log_status(kernel: Kernel) -> LogStatus:
    journal = kernel.journal
    if journal is None or kernel.erasures is None:
        problem = type(kernel.journal_problem).__name__
        return LogStatus(str(kernel.profile.directory / "log.db"), "broken", power_safe=False, last_error=problem)
    try:
        head, problem = journal.head().seq, ""
        erasing = len(kernel.erasures.pending())
    except StoreError as error:
        head, erasing, problem = journal.last_seq, 0, type(error).__name__
    degraded = not journal.power_safe or journal.held > 0 or bool(journal.refusing) or bool(journal.unreadable)
    return LogStatus(
        path=str(journal.path),
        state="broken" if problem else "degraded" if degraded else "ok",
        head=head,
        synced=journal.synced,
        bytes=journal.used_bytes(),
        wal_bytes=journal.wal_bytes(),
        power_safe=journal.power_safe,
        held=journal.held,
        held_bytes=journal.held_bytes,
        refused=journal.refused,
        erasing=erasing,
        quarantined=journal.quarantined,
        unreadable=len(journal.unreadable),
        last_error=problem or journal.refusing or journal.last_error,
    )


def _gate_status(kernel: Kernel) -> GateStatus:
    gate, quota = kernel.gate, kernel.config.gate.quota_bytes
    seen = gate.status(receipts=_RECEIPTS)
    used = gate.shelf.usage()
    full = quota and used >= 0.8 * quota
    last = seen.receipts[-1] if seen.receipts else {}
    problem = _archive_problem(kernel)
    return GateStatus(
        mode=seen.mode,
        decided_by=seen.decided_by,
        path=seen.archive,
        fallback=seen.fallback,
        refusals=sum(seen.refusals.values()),
        released=tuple(seen.released),
        last_verdict=str(last.get("verdict", "")),
        bytes=used,
        warning=f"the archive uses {100 * used // quota} % of gate.quota_bytes" if full else "",
        receipts=seen.receipts,
        state="broken" if problem and not seen.fallback else "degraded" if problem or seen.refusals else "ok",
        last_error=problem,
    )


def _archive_problem(kernel: Kernel) -> str:
    """A real read of the archives that are there."""
    try:
        kernel.gate.shelf.list(limit=1)
    except MemorydError as error:
        return type(error).__name__
    return ""


async def _member_status(kernel: Kernel, member: Member, head: int) -> BackendStatus:
    info = member.backend.info
    if kernel.journal is None:
        return BackendStatus(info.name, info.label, member.role, "off" if kernel.is_null else "degraded")
    rows, problem = await _counts(kernel, member)
    proof = await _proof(kernel, member)
    waiting = max(0, head - member.progress.seq)
    oldest, dead = await kernel.read_worker.run(_delivery_counts, kernel, member)
    owner = read_owner(kernel.profile.directory / "owner.lock") if kernel.is_remote(member) else None
    stopped, late = owner is not None and owner.stopped, member.degraded_since is not None
    return BackendStatus(
        name=info.name,
        label=info.label,
        role=member.role,
        state="broken" if problem or member.damaged else "degraded" if late or stopped or proof.error else "ok",
        cursor=member.progress.seq,
        backlog=waiting,
        oldest_age=max(0.0, (kernel.clock() - oldest) / 1e6) if waiting and oldest is not None else 0.0,
        degraded_since=member.degraded_since,
        recovered_at=member.recovered_at,
        recovered=member.recovered,
        last_error=problem or proof.error or member.last_error,
        dead=dead,
        owner=owner.pid if owner is not None else None,
        owner_stopped=stopped,
        rows=rows,
    )


async def _proof(kernel: Kernel, member: Member) -> Proof:
    """Of local memory, which is at hand; a remote backend is written to by its own task, and says how that went."""
    history = kernel.history
    if history is None or history[0] is not member or not member.is_open:
        return Proof()
    return await kernel.proofs.get(member.name, lambda: prove_local(history[1]))


def _delivery_counts(kernel: Kernel, member: Member) -> tuple[int | None, int]:
    """When the oldest event that waits was accepted, and how many dead letters there are."""
    assert kernel.journal is not None and kernel.outbox is not None
    try:
        return kernel.journal.oldest_after(member.progress.seq), kernel.outbox.dead_count(member.name)
    except StoreError:  # the log's own part says so
        return None, 0


async def _counts(kernel: Kernel, member: Member) -> tuple[Mapping[str, int], str]:
    history = kernel.history
    if history is None or history[0] is not member:
        return {}, ""
    try:
        return await history[1].counts(), ""
    except MemorydError as error:
        return {}, member.met(error) if member.is_open else member.last_error


def _notes(
    kernel: Kernel, tasks: tuple[TaskStatus, ...], backends: Iterable[BackendStatus], gate: GateStatus, stores: Iterable[StoreStatus]
) -> tuple[str, ...]:
    notes = list(kernel.notes)
    if kernel.journal_problem is not None:
        notes.append(f"the log cannot be opened: {kernel.journal_problem}")
    notes += [f"task {task.name} {task.state} after {task.crashes} crashes ({task.last_error})" for task in tasks if task.crashes]
    notes += [
        f"process {backend.owner} delivers to {backend.name} and stands still: resume it, or end it and another takes over"
        for backend in backends
        if backend.owner_stopped
    ]
    if gate.refusals:
        notes.append(f"compactions were refused and their sessions are not archived since ({gate.refusals} refusals): {_REFUSED}")
    notes += limit_notes(kernel)
    notes += kernel.proofs.details()
    notes += [f"{member.name}: its memory is damaged; {REPAIR}" for member in kernel.members if member.damaged]
    notes += [
        f"process {pid} reads {store.path} and pins {store.wal_bytes} bytes of its write-ahead log, which shrinks when that process is done"
        for store in stores
        if store.wal_bytes > kernel.config.log.wal_cap_bytes
        for pid in store.readers
    ]
    if kernel.journal is not None and not kernel.journal.power_safe:
        notes.append("the last sync of the log failed: what was journaled since survives kill -9, maybe not power loss")
    return tuple(notes)
