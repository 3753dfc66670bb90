"""The event log: append, read, barrier.  The system of record and the queue of every backend."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs

from memoryd.core import (
    Accepted,
    Cursor,
    Entry,
    Erased,
    Event,
    Forget,
    Scope,
    Value,
    decode_event,
    encode_event,
    kind_of,
)
from memoryd.errors import BarrierFailed, ClosedError, StoreBroken, StoreCorrupt, StoreError, StoreLocked
from memoryd.journal._held import Held, Row
from memoryd.journal._room import Room
from memoryd.journal._spool import list_spool, quarantine, read_spool, remove_spool, write_spool
from memoryd.store import (
    Connection,
    Options,
    ProfileStore,
    Schema,
    WalBarrier,
    connect,
    fsync_directory,
    load_migrations,
    load_queries,
    prepare,
    wal_size,
)

__all__ = ["Journal", "Limits"]

SQL = load_queries("memoryd.journal", "queries.sql")
SCHEMA = Schema("log", load_migrations("memoryd.journal"))

_APPEND = SQL["append"]
_FORGET = kind_of(Forget(bytes(16), Scope(), 0))
_BUSY_MS = 5  # the longest an append waits for another process's lock before the event is held
_OPEN_BUSY_MS = 500
_KEEPER_BUSY_MS = 100
_FAR = 4  # times its cap that a WAL may grow under a stream of appends
_SETTLED = 4096  # held events whose seq is remembered for whoever waits for it
_RETRY_ROWS = 64
_RETRY_BYTES = 1 << 20


@attrs.frozen(slots=True, eq=False, repr=False)
class Limits(Value):
    """Bounds of a journal, in bytes; 0 means none, ``free_floor`` None the default."""

    max_bytes: int = 0
    held_max_bytes: int = 16 << 20
    free_floor: int | None = None
    wal_cap_bytes: int = 8 << 20


class Journal:
    """One profile's log.  Every method may be called from any thread; ``append`` is fast enough to be called inline on a loop.

    Three connections: one appends (and writes the small tables), one reads, one checkpoints the WAL, so that neither a long read nor
    a checkpoint delays an append.
    """

    def __init__(
        self, profile: ProfileStore, limits: Limits, *, vfs: str | None = None, fdatasync: Callable[[int], None] | None = None
    ) -> None:
        self.path = profile.directory / "log.db"
        self._spool_directory = profile.directory / "spool"
        self._limits = limits
        self._lock = threading.Lock()
        self._read_lock = threading.Lock()
        prepare(self.path, SCHEMA, profile, vfs=vfs)
        self._barrier = WalBarrier(self.path) if fdatasync is None else WalBarrier(self.path, fdatasync=fdatasync)
        self._barrier_lock = threading.Lock()
        self._keep_lock = threading.Lock()
        self._room = Room(self.path, limits.max_bytes, limits.free_floor)
        self._held = Held(limits.held_max_bytes)
        self._closed = False
        self.synced = 0
        self.last_seq = 0
        self.refused = 0
        self.refusing = ""
        self._settled: dict[str, int] = {}
        self.quarantined = 0
        self.unreadable: set[int] = set()
        self.last_error = ""
        with ExitStack() as undo:
            self._connect(undo, vfs)
            self._begin()
            undo.pop_all()

    def _connect(self, undo: ExitStack, vfs: str | None) -> None:
        def opened(options: Options) -> Connection:
            connection = connect(self.path, options, vfs=vfs)
            undo.callback(connection.close)
            return connection

        undo.callback(self._barrier.close)
        cap = self._limits.wal_cap_bytes
        self._writer = opened(Options(synchronous="NORMAL", busy_ms=_BUSY_MS, autocheckpoint=0, wal_limit=cap))
        self._reader = opened(Options(readonly=True, busy_ms=2000))
        self._keeper = opened(Options(synchronous="NORMAL", busy_ms=_KEEPER_BUSY_MS, autocheckpoint=0))

    def _begin(self) -> None:
        """The barrier that an open begins with; it also makes the WAL exist, and its name durable, before the first append."""
        with self._lock:
            try:
                self._count_open()
            except StoreLocked:
                if self._writer.one(SQL["epoch"]) is None:  # a log of an earlier run can be opened while it is locked
                    raise
            self.epoch: str = self._writer.all(SQL["epoch"])[0][0]
            self.last_seq = self._head_seq()
        self.barrier()
        fsync_directory(self.path.parent)

    def _count_open(self) -> None:
        self._writer.set_busy_ms(_OPEN_BUSY_MS)
        try:
            with self._writer.transaction("IMMEDIATE"):
                self._writer.run(SQL["first_open"], (secrets.token_hex(8),))
                self._writer.run(SQL["count_open"])
        finally:
            self._writer.set_busy_ms(_BUSY_MS)

    # -- append -------------------------------------------------------------------------------------------------------------

    def append(self, event: Event, turn_key: bytes | None = None) -> Accepted:
        """Commit ``event`` and return *journaled* with its seq; *held* where the log is locked, *refused* where it cannot grow.

        With a ``turn_key`` that the log (or the held queue) has already, the first event is returned with reason ``duplicate``.
        Raises only :class:`ClosedError` and :class:`ForkedError`.
        """
        row: Row = (event.event_id, turn_key, event.at, kind_of(event), encode_event(event))
        with self._lock:
            if self._closed:
                raise ClosedError("the journal is closed: open the runtime again")
            if self._held:
                return self._hold(row)
            problem = "missing" if self._barrier.lost else self._room.problem(len(row[4]))
            if problem:
                return self._refuse(problem)
            try:
                return self._commit(row)
            except StoreLocked:
                return self._hold(row)
            except StoreError as error:
                self.last_error = type(error).__name__
                return self._refuse(error.cause)

    def _commit(self, row: Row) -> Accepted:
        if row[1] is not None:
            return self._commit_once(row)
        self.last_seq = seq = self._writer.insert(_APPEND, row)
        self.refusing = ""
        return Accepted("journaled", seq, row[0].hex())

    def _commit_once(self, row: Row) -> Accepted:
        added = self._writer.one(SQL["append_once"], row)
        if added is not None:
            self.last_seq = added[0]
            return Accepted("journaled", added[0], row[0].hex())
        [(seq, event_id)] = self._writer.all(SQL["by_turn_key"], (row[1],))
        return Accepted("journaled", seq, event_id.hex(), "duplicate")

    def _hold(self, row: Row) -> Accepted:
        first = self._held.holder_of(row[1])
        if first is not None:
            return Accepted("held", None, first.hex(), "duplicate")
        if self._held.offer(row):
            return Accepted("held", None, row[0].hex(), "locked")
        return self._refuse("held-full")

    def _refuse(self, reason: str) -> Accepted:
        self.refused += 1
        self.refusing = reason
        return Accepted("refused", None, "", reason)

    def check_in_place(self) -> None:
        """Raise :class:`StoreBroken` where the log was removed or replaced while it was open: a commit would go nowhere."""
        if self._barrier.lost:
            raise StoreBroken(f"{self.path} was removed or replaced while in use; open it again", path=str(self.path))

    @property
    def power_safe(self) -> bool:
        """False from a failed barrier until the log has been rewritten and synced."""
        return not self._barrier.failed

    # -- held ---------------------------------------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        return len(self._held)

    @property
    def held_bytes(self) -> int:
        return self._held.size

    def retry_held(self) -> int:
        """Move some held events into the log, oldest first; returns how many are still held.  Never raises a store error."""
        with self._lock:
            if self._closed or not self._held:
                return len(self._held)
            rows = self._held.first(_RETRY_ROWS, _RETRY_BYTES)
            try:
                self._append_rows(rows)
            except StoreError as error:
                self.last_error = type(error).__name__
            else:
                self._held.drop(len(rows))
            return len(self._held)

    def settle_held(self) -> None:
        """Move all that is held into the log; raises :class:`StoreLocked` where it cannot take some of it now."""
        left = self.held
        while left:
            before, left = left, self.retry_held()
            if left >= before:
                raise StoreLocked(f"{self.path}: {left} events wait for the lock of the log; try again", path=str(self.path))

    def _append_rows(self, rows: Sequence[Row]) -> None:
        """Append ``rows`` in one transaction; a turn key that the log has already is passed over."""
        self.check_in_place()
        with self._writer.transaction("IMMEDIATE"):
            added = [self._writer.one(SQL["append_once"], row) for row in rows]
        seqs = {row[0].hex(): seq[0] for row, seq in zip(rows, added, strict=True) if seq is not None}
        self.last_seq = max(self.last_seq, *seqs.values(), 0)
        self._settled.update(seqs)
        while len(self._settled) > _SETTLED:
            del self._settled[next(iter(self._settled))]

    def settled(self, event_id: str) -> int | None:
        """The seq that a held event got when it was journaled later, for the last few thousand of them."""
        return self._settled.get(event_id)

    # -- spool --------------------------------------------------------------------------------------------------------------

    def ingest_spool(self) -> int:
        """Take what earlier runs left in ``spool/`` into the log, each file exactly once; returns the number of events."""
        count = 0
        for path in list_spool(self._spool_directory):
            try:
                spooled = read_spool(path)
            except FileNotFoundError:  # another process was faster
                continue
            except OSError as error:
                raise StoreBroken(f"{path} cannot be read ({error.strerror}); check its owner and mode", path=str(path)) from error
            count += self._ingest(path.name, spooled.rows)
            if spooled.damaged:
                self.quarantined += 1
                quarantine(path)
            else:
                remove_spool(path)
        self._forget_ingested()
        return count

    def _ingest(self, name: str, rows: Sequence[Row]) -> int:
        with self._lock, self._writer.transaction("IMMEDIATE"):
            if self._writer.one(SQL["is_ingested"], (name,)) is not None:
                return 0
            self._writer.run(SQL["ingested"], (name,))
            added = [self._writer.one(SQL["append_once"], row) for row in rows]
            self.last_seq = max(self.last_seq, *(seq[0] for seq in added if seq is not None), 0)
        return len(rows)

    def _forget_ingested(self) -> None:
        present = {path.name for path in list_spool(self._spool_directory)}
        with self._lock:
            for (name,) in self._writer.all(SQL["ingested_names"]):
                if name not in present:
                    self._writer.run(SQL["drop_ingested"], (name,))

    # -- barrier ------------------------------------------------------------------------------------------------------------

    def barrier(self) -> int:
        """Make everything appended so far survive power loss; returns the seq that is safe now.

        Raises :class:`BarrierFailed`.  A failed barrier is not retried into a success: :meth:`heal` has to write the log's pages to
        the file first, because after a failed sync the kernel may have dropped what it could not write.
        """
        with self._barrier_lock:
            upto = self.last_seq
            if not self.power_safe:
                self._heal()
            try:
                self._barrier.sync()
            except BarrierFailed as error:
                self.last_error = type(error).__name__
                raise
            self.synced = max(self.synced, upto)
            return self.synced

    def _heal(self) -> None:
        """After a failed barrier: copy the WAL into the file (with SQLite's own syncs) and begin a fresh WAL."""
        try:
            done = self.truncate_wal()
            if done:
                with self._lock:
                    self._writer.run(SQL["count_open"])
        except StoreError as error:
            raise BarrierFailed(
                f"{self.path}: an earlier sync failed and the log could not be rewritten ({error.cause}): check the disk",
                path=str(self.path),
            ) from error
        if not done:
            raise BarrierFailed(
                f"{self.path}: an earlier sync failed and a reader still pins the log: it is tried again", path=str(self.path)
            )
        self._barrier.recovered()

    def trim_wal(self, *, idle: bool = False) -> None:
        """Copy the WAL into the file when it is above its cap, or when nothing else is going on; never waits for a reader.

        A WAL begins anew only in a pause between appends.  One that has grown far beyond its cap makes that pause: appends are held.
        """
        size, cap = wal_size(self.path), self._limits.wal_cap_bytes
        if size > cap or (idle and size):
            with self._keep_lock:
                self._keeper.checkpoint("PASSIVE")
        if size > _FAR * cap and wal_size(self.path) > cap:
            self._cut_wal()

    def _cut_wal(self) -> None:
        with self._keep_lock:
            self._keeper.set_busy_ms(0)
            try:
                self._keeper.checkpoint("TRUNCATE")
            except StoreLocked:  # a reader pins it: the next look tries again
                return
            finally:
                self._keeper.set_busy_ms(_KEEPER_BUSY_MS)

    def truncate_wal(self) -> bool:
        """After an erasure: no byte of a cleared payload stays in the WAL.  False where a reader pins it."""
        with self._keep_lock:
            try:
                self._keeper.checkpoint("TRUNCATE")
            except StoreLocked:
                return False
        return True

    # -- read ---------------------------------------------------------------------------------------------------------------

    def head(self) -> Cursor:
        """The last committed event of any process."""
        with self._lock:
            return Cursor(self.epoch, self._head_seq())

    def _head_seq(self) -> int:
        return int(self._writer.all(SQL["head"])[0][0] or 0)

    def read(self, after: int, count: int = 512, max_bytes: int = 1 << 20) -> list[Entry]:
        """The entries after seq ``after``, in order: at most ``count`` and about ``max_bytes``, at least one where there is one."""
        entries: list[Entry] = []
        size = 0
        with self._read_lock, self._reader.transaction("DEFERRED"):
            for seq, event_id, at, kind, payload in self._reader.execute(SQL["page"], (after, count)):
                size += len(payload or b"")
                if entries and size > max_bytes:
                    break
                entries.append(self._entry(seq, event_id, at, kind, payload))
        return entries

    def _entry(self, seq: int, event_id: bytes, at: int, kind: int, payload: bytes | None) -> Entry:
        """A row as an entry; one whose payload is damaged keeps its place, is counted, and holds up nobody.

        A row without an id or a time was never written by us: the file is damaged, and SQLite did not notice.
        """
        if type(event_id) is not bytes or len(event_id) != 16 or type(at) is not int or at < 0:
            problem = "is damaged; nothing was deleted: run 'memoryd repair', which keeps the file, or restore a backup"
            raise StoreCorrupt(f"{self.path} {problem} (the event at place {seq} has no id or no time)", path=str(self.path))
        try:
            event = decode_event(event_id, at, kind, payload)
        except StoreCorrupt:
            self.unreadable.add(seq)
            event = Erased(event_id, at)
        return Entry(Cursor(self.epoch, seq), event)

    def forgets(self) -> list[Entry]:
        """Every tombstone, in order."""
        with self._read_lock:
            return [self._entry(*row) for row in self._reader.all(SQL["forgets"], (_FORGET,))]

    def ids_of(self, seqs: Sequence[int]) -> tuple[bytes, ...]:
        """The event ids at those places, in their order."""
        with self._read_lock:
            rows = [self._reader.one(SQL["event_id_of"], (seq,)) for seq in seqs]
        return tuple(row[0] for row in rows if row is not None)

    def latest_ids(self, after: int, count: int) -> list[tuple[int, bytes]]:
        """Places and event ids of the last ``count`` events after seq ``after``, latest first."""
        with self._read_lock:
            return [(seq, event_id) for seq, event_id in self._reader.all(SQL["latest_ids"], (after, count))]

    def find(self, event_id: bytes) -> Entry | None:
        """The entry with that event id, by a scan of the log (rare: forget and edit)."""
        with self._read_lock:
            row = self._reader.one(SQL["by_event_id"], (event_id,))
        if row is None:
            return None
        return self._entry(*row)

    def known_turn_key(self, keys: Sequence[bytes]) -> bytes:
        """The first of ``keys`` that an event of the log has, else the first."""
        with self._read_lock:
            return next((key for key in keys if self._reader.one(SQL["by_turn_key"], (key,)) is not None), keys[0])

    def oldest_after(self, seq: int) -> int | None:
        """When the first event after ``seq`` was accepted (its ``at``), or None where there is none."""
        with self._read_lock:
            row = self._reader.one(SQL["accepted_at"], (seq,))
        return None if row is None else int(row[0])

    def prove(self) -> None:
        """A real write that changes nothing.  Raises :class:`StoreError` where the log takes none now."""
        self.check_in_place()
        with self._lock:
            self._writer.run(SQL["prove"])

    def room_problem(self, size: int) -> str:
        """Why the log may not grow by ``size`` bytes (``full``, ``quota``), or an empty text."""
        return self._room.problem(size)

    def used_bytes(self) -> int:
        return self._room.used()

    def wal_bytes(self) -> int:
        return wal_size(self.path)

    @property
    def connection(self) -> Connection:
        """The writing connection, for the outbox and the erasures of this package; use :attr:`lock` around it."""
        return self._writer

    @property
    def lock(self) -> threading.Lock:
        return self._lock

    # -- close --------------------------------------------------------------------------------------------------------------

    def spool_held(self) -> Path | None:
        """Write what is still held to ``spool/`` with fsync; the next open ingests it."""
        with self._lock:
            rows = list(self._held.all())
            if not rows:
                return None
            path = write_spool(self._spool_directory, rows)
            self._held.drop(len(rows))
            return path

    def close(self) -> None:
        """End with a barrier; what is still held goes to ``spool/``.  Raises the first store error after closing everything."""
        if self._closed:
            return
        problems: list[StoreError] = []
        for step in (self.spool_held, self.barrier):
            try:
                step()
            except StoreError as error:
                problems.append(error)
        with self._lock, self._read_lock, self._keep_lock:
            self._closed = True
            self._reader.close()
            self._keeper.close()
            self._writer.close()
            self._barrier.close()
        if problems:
            raise problems[0]

