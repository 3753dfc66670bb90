"""The log's part of *forget*: find the events, write the tombstone, clear the payloads in slices, resume after a crash."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import msgspec

from memoryd.core import Accepted, Entry, Erased, Forget, Selection, Selector, Value, encode_event, kind_of
from memoryd.errors import StoreCorrupt, StoreError
from memoryd.journal._journal import SQL, Journal

__all__ = ["ErasePlan", "Erasures", "PendingErasure"]

_SLICE = 256


@attrs.frozen(slots=True, eq=False, repr=False)
class ErasePlan(Value):
    """What the archive has to erase for one forget.  Kept only until that is done.

    ``turns`` are the identities of erased turns, each with its session; ``sessions`` are erased whole; ``everything`` means all of the
    user.  Rows archived from ``until`` on (microseconds since the epoch) are not meant.
    """

    user: str
    turns: tuple[tuple[str, tuple[bytes, ...]], ...] = ()
    sessions: tuple[str, ...] = ()
    everything: bool = False
    until: int = 0


@attrs.frozen(slots=True, eq=False, repr=False)
class PendingErasure(Value):
    """A forget that is not finished; ``targets`` are the seqs whose payload may still be there."""

    seq: int
    targets: tuple[int, ...]
    plan: ErasePlan


def _packed(plan: ErasePlan) -> bytes:
    def safe(text: str) -> bytes:
        return text.encode("utf-8", "surrogatepass")

    turns = [(safe(session), identities) for session, identities in plan.turns]
    return msgspec.msgpack.encode([safe(plan.user), turns, [safe(s) for s in plan.sessions], plan.everything, plan.until])


def _unpacked(data: bytes) -> ErasePlan:
    def text(value: bytes) -> str:
        return value.decode("utf-8", "surrogatepass")

    user, turns, sessions, everything, until = msgspec.msgpack.decode(data)
    erased = tuple((text(session), tuple(identities)) for session, identities in turns)
    return ErasePlan(text(user), erased, tuple(map(text, sessions)), everything, until)


class Erasures:
    """Forgets of one journal.  Every step may be repeated."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def select(self, selector: Selector) -> Selection:
        """Scan the log in pages for what ``selector`` means, and for where else its words are; no read transaction outlives a page.

        What is held or spooled was accepted before, so it goes into the log first; :class:`StoreLocked` where that cannot be yet.
        """
        self._journal.ingest_spool()
        self._journal.settle_held()
        selection = Selection(selector)
        for look in (selection.scan, selection.count_quotes):
            for entries in self._pages():
                look(entries)
        return selection

    def _pages(self) -> Iterator[list[Entry]]:
        after = 0
        while entries := self._journal.read(after, 2048, 4 << 20):
            yield entries
            after = entries[-1].seq

    def read(self, after: int, count: int, max_bytes: int) -> list[Entry]:
        """As :meth:`Journal.read`; what a forget that is not through yet means is erased in it already."""
        entries = self._journal.read(after, count, max_bytes)
        gone = {seq for erasure in self.pending() for seq in erasure.targets}
        return [_erased(entry) if entry.seq in gone else entry for entry in entries]

    def begin(self, event: Forget, plan: ErasePlan) -> Accepted:
        """Append the tombstone and the plan in one transaction.  Raises the store's errors; nothing is erased then."""
        journal = self._journal
        journal.check_in_place()
        with journal.lock, journal.connection.transaction("IMMEDIATE"):
            payload = encode_event(event)
            seq = journal.connection.insert(SQL["append"], (event.event_id, None, event.at, kind_of(event), payload))
            journal.connection.run(SQL["plan_erasure"], (seq, _packed(plan)))
            journal.last_seq = seq
        return Accepted("journaled", seq, event.event_id.hex())

    def pending(self) -> list[PendingErasure]:
        journal = self._journal
        with journal.lock:
            rows = journal.connection.all(SQL["erasures"])
        found: list[PendingErasure] = []
        for seq, position, plan in rows:
            entries = journal.read(seq - 1, 1)
            event = entries[0].event if entries else None
            if not isinstance(event, Forget):
                raise StoreCorrupt(f"{journal.path}: the tombstone of a forget is missing at {seq}", path=str(journal.path))
            found.append(PendingErasure(seq, event.targets[position:], _unpacked(plan)))
        return found

    def clear(self, erasure: PendingErasure) -> None:
        """Clear the payloads of ``erasure`` in slices; how far it is commits with each slice."""
        total = len(erasure.targets)
        done_before = self._position(erasure.seq)
        for start in range(0, total, _SLICE):
            slice_ = erasure.targets[start : start + _SLICE]
            self._clear_slice(erasure.seq, slice_, done_before + start + len(slice_))

    def _position(self, seq: int) -> int:
        with self._journal.lock:
            return next((row[1] for row in self._journal.connection.all(SQL["erasures"]) if row[0] == seq), 0)

    def _clear_slice(self, seq: int, targets: tuple[int, ...], position: int) -> None:
        """Rows are taken out and put back without their payloads: changed in place they would leave pages almost empty, for good."""
        connection = self._journal.connection
        with self._journal.lock, connection.transaction("IMMEDIATE"):
            rows = [row for target in targets for row in connection.all(SQL["without_payload"], (target,))]
            connection.executemany(SQL["take_out"], [(row[0],) for row in rows])
            connection.executemany(SQL["put_back"], rows)
            connection.run(SQL["erased_to"], (position, seq))

    def finish(self, erasure: PendingErasure) -> bool:
        """Remove the plan and truncate the WAL; False where a reader still pins it (the plan stays, and is tried again)."""
        journal = self._journal
        try:
            truncated = journal.truncate_wal()
        except StoreError:
            return False
        if truncated:
            with journal.lock:
                journal.connection.run(SQL["finish_erasure"], (erasure.seq,))
        return truncated


def _erased(entry: Entry) -> Entry:
    return Entry(entry.cursor, Erased(entry.event.event_id, entry.event.at))
