"""What the parts of a runtime share: the profile's stores, the backends, the wake-ups, the clock."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import attrs

from memoryd.checkpoint import Gate
from memoryd.core import Config, HistoryBackend
from memoryd.errors import (
    BackendError,
    ClosedError,
    ForkedError,
    ProfileMismatch,
    StoreError,
    StoreTooNew,
)
from memoryd.journal import Erasures, Journal, Limits, Outbox, Privacy
from memoryd.log import Log
from memoryd.runtime._members import Member, Role, build_members
from memoryd.runtime._proof import Proofs
from memoryd.runtime._stages import Stage, StageName, make_stages
from memoryd.runtime._wake import Bells
from memoryd.settings import log_path
from memoryd.store import ProfileStore, Worker

__all__ = ["Kernel", "Member", "Role", "build_kernel", "make_gate", "now_micros"]

OnBug = Literal["contain", "raise"]


def now_micros() -> int:
    """The wall clock in microseconds since the epoch: written down, never waited on, never an order."""
    return time.time_ns() // 1000


@attrs.define(slots=True, eq=False, repr=False)
class Kernel:
    """Everything of an open runtime.

    ``journal`` and what hangs on it are None under the null backend, and while the log cannot be opened: ``journal_problem`` says why,
    turns are refused, and the gate goes on.  ``notes`` say what a user should know of the choice of backends.
    """

    home: Path
    config: Config
    profile: ProfileStore
    gate: Gate
    log: Log
    on_bug: OnBug
    privacy: Privacy
    members: tuple[Member, ...]
    bells: Bells
    sync_worker: Worker
    read_worker: Worker
    gate_worker: Worker
    archive_worker: Worker
    journal: Journal | None = None
    outbox: Outbox | None = None
    erasures: Erasures | None = None
    journal_problem: StoreError | None = None
    clock: Callable[[], int] = now_micros
    pid: int = attrs.field(factory=os.getpid)
    opened_at: int = attrs.field(factory=now_micros)
    stages: Mapping[StageName, Stage] = attrs.field(factory=make_stages)
    proofs: Proofs = attrs.field(factory=Proofs)
    notes: list[str] = attrs.field(factory=list)
    accepting: bool = True
    running: bool = True

    def check_open(self) -> None:
        """Raise where the process forked after open, or the runtime was closed."""
        if os.getpid() != self.pid:
            raise ForkedError('memoryd was opened before a fork: open it in the child, or use Memory(fork="reopen")')
        if not self.accepting:
            raise ClosedError("this memoryd runtime is closed: open it again")

    @property
    def primary(self) -> Member | None:
        return next((member for member in self.members if member.role == "primary"), None)

    @property
    def history(self) -> tuple[Member, HistoryBackend] | None:
        """The local member, which serves history, listing and forget for every primary."""
        for member in self.members:
            if isinstance(member.backend, HistoryBackend):
                return member, member.backend
        return None

    @property
    def is_null(self) -> bool:
        """True where capture is off: there is no log and never will be."""
        return self.config.backend == "null"

    def is_remote(self, member: Member) -> bool:
        """True where the log keeps the member's cursor and one process delivers; such a backend may be slow, down or hanging."""
        return not self.is_null and not isinstance(member.backend, HistoryBackend)

    def demote(self, primary: Member, reason: str) -> None:
        """Local is the primary instead; ``primary`` stays where it was also named as a mirror."""
        named = primary.name in self.config.mirrors
        self.members = tuple(member for member in self.members if member is not primary or named)
        for member in self.members:
            if member is primary:
                member.role = "mirror"
            elif isinstance(member.backend, HistoryBackend):
                member.role = "primary"
        self.notes.append(f"auto: local is the primary: {primary.name}: {reason}")
        self.log.warning("backend.demoted", backend=primary.name)

    def adopt(self, journal: Journal) -> None:
        """Use ``journal`` from now on."""
        self.outbox, self.erasures = Outbox(journal), Erasures(journal)
        self.privacy.adopt(journal)
        self.journal, self.journal_problem = journal, None

    @property
    def workers(self) -> tuple[Worker, ...]:
        return self.sync_worker, self.read_worker, self.gate_worker, self.archive_worker

    def close_stores(self) -> None:
        """Close what blocks: the journal (barrier and spool), the archive, the threads.  Raises the journal's error at the end."""
        self.running = False
        try:
            if self.journal is not None:
                self.journal.close()
        finally:
            self.gate.close()


def build_kernel(home: Path, profile: ProfileStore, config: Config, on_bug: OnBug, bells: Bells, vfs: str | None) -> Kernel:
    """Open the stores of ``profile``.  Blocking; backends are built, not opened."""
    members, notes = build_members(home, profile, config, vfs)
    kernel = Kernel(
        home=home,
        config=config,
        profile=profile,
        gate=make_gate(profile, config, vfs),
        log=Log(config.logging.level, config.logging.format, log_path(home, config.logging.file), profile.name),
        on_bug=on_bug,
        privacy=Privacy(profile.key, profile.earlier),
        members=members,
        bells=bells,
        sync_worker=Worker("memoryd-sync"),
        read_worker=Worker("memoryd-read"),
        gate_worker=Worker("memoryd-gate"),
        archive_worker=Worker("memoryd-archive"),
        notes=[*config.warnings, *notes],
    )
    for note in config.warnings:
        kernel.log.warning("config.warning", problem=note)
    if not kernel.is_null:
        try_journal(kernel, vfs)
    return kernel


def try_journal(kernel: Kernel, vfs: str | None) -> bool:
    """Open the log and take in what earlier runs spooled; False where it cannot be opened now.  Blocking.

    A log that must not be served (another profile's, a newer program's) is raised.
    """
    try:
        journal = open_journal(kernel.profile, kernel.config, vfs)
    except (ProfileMismatch, StoreTooNew):
        raise
    except StoreError as error:
        kernel.journal_problem = error
        kernel.log.error("journal.not_open", error=type(error).__name__)
        return False
    try:
        journal.ingest_spool()
    except StoreError as error:  # the files stay; maintenance tries again
        kernel.log.warning("journal.spool_waits", error=type(error).__name__)
    kernel.adopt(journal)
    return True


def make_gate(profile: ProfileStore, config: Config, vfs: str | None = None) -> Gate:
    """The gate of a profile as it is configured; it needs nothing else of a runtime."""
    second = Path(config.gate.fallback_dir).expanduser() if config.gate.fallback_dir else None
    return Gate(
        profile,
        mode=config.gate.mode,
        fallback_dir=second,
        quota_bytes=config.gate.quota_bytes,
        deadline_s=config.deadlines.checkpoint,
        vfs=vfs,
    )


async def open_member(kernel: Kernel, member: Member) -> None:
    """Open a local backend; one that cannot be opened now is tried again by its writer task, and status says so meanwhile.

    A store that must not be served (another profile's, a newer program's) is raised.
    """
    try:
        await member.backend.open()
    except (ProfileMismatch, StoreTooNew):
        raise
    except (BackendError, StoreError) as error:
        kind = member.stuck(error, kernel.clock())
        kernel.log.warning("backend.not_open", backend=member.name, error=kind)
        return
    member.is_open = True


def open_journal(profile: ProfileStore, config: Config, vfs: str | None) -> Journal:
    """The log of ``profile`` with the limits that are configured.  Blocking."""
    floor = None if config.store.free_floor == "auto" else config.store.free_floor
    limits = Limits(config.log.max_bytes, config.log.held_max_bytes, floor, config.log.wal_cap_bytes)
    return Journal(profile, limits, vfs=vfs)

