"""Archiving one transcript: slices with fsync, each re-read; the receipt last."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import attrs

from memoryd.checkpoint._batches import Encode, encode_row, evidence_rows, row_batches, source_lines, source_rows
from memoryd.checkpoint._chain import Chain, Identify, Moved
from memoryd.checkpoint._files import ROWS, SOURCE, Files, name_bytes, walk
from memoryd.checkpoint._pages import ERASED, Position, count_rows, root_of
from memoryd.core import Receipt, from_micros
from memoryd.errors import DeadlineExceeded, StoreCorrupt, StoreError

__all__ = ["SLICE_BYTES", "Transcript", "Upsert"]

SLICE_BYTES = 2 << 20
_RESERVE = 0.25
_MAX_RESERVE_S = 2.0


@attrs.frozen(slots=True, eq=False, repr=False)
class Transcript:
    """What is to be archived, and under which names.  ``at`` is in microseconds since the epoch."""

    rows: Sequence[object]
    source: bytes | None
    user: str
    session: str
    host: str
    trigger: str
    at: int


class Upsert:
    """One call: it ends at ``deadline`` (``time.monotonic()`` seconds), and what it had stored by then stays for the next call."""

    def __init__(self, files: Files, transcript: Transcript, deadline: float) -> None:
        self._files = files
        self._transcript = transcript
        self._deadline = deadline
        self._soft = deadline - min(_MAX_RESERVE_S, _RESERVE * max(0.0, deadline - time.monotonic()))
        self._added = 0
        self._chains: list[Chain] = []

    def run(self) -> Receipt:
        """Archive, prove and return the receipt.  Raises :class:`~memoryd.errors.DeadlineExceeded` or a ``StoreError``."""
        share = True
        while True:
            try:
                return self._run(share)
            except Moved:
                self._check_deadline()
            except StoreCorrupt:
                if not share:
                    raise
                share = False

    def _run(self, share: bool) -> Receipt:
        self._chains = []
        rows = self._take(ROWS, self._transcript.rows, encode_row, evidence_rows, share)
        if self._transcript.source is None:
            return self._finish(rows, None)
        lines = self._take(SOURCE, source_lines(self._transcript.source), _as_it_is, source_rows, share)
        return self._finish(rows, lines)

    def _take(self, kind: int, items: Sequence[Any], encode: Encode, identify: Identify, share: bool) -> Chain:
        """Follow and grow one chain by ``items``; at the deadline store what there is, and raise."""
        chain = self._chain(kind, identify, share)
        for batch in row_batches(items, encode, self._files.digests.row, self._expired):
            if self._pending_bytes() and self._pending_bytes() + batch.size > SLICE_BYTES:
                self._store()
            chain.feed(batch)
        if chain.position.rows < len(items):
            self._stop(chain, len(items))
        return chain

    def _chain(self, kind: int, identify: Identify, share: bool) -> Chain:
        owner = (name_bytes(self._transcript.user), name_bytes(self._transcript.session), kind)
        found = self._files.writer.one(self._files.sql["find_chain"], owner)
        root = root_of(self._files.digests, *owner)
        chain = Chain(self._files, owner, identify, self._transcript.at, int(found[0]) if found else None, root, share)
        self._chains.append(chain)
        return chain

    def _pending_bytes(self) -> int:
        return sum(chain.pending_bytes for chain in self._chains)

    # -- storing ------------------------------------------------------------------------------------------------------------

    def _store(self) -> None:
        """One slice without an attempt: progress that the next call finds."""
        with self._transaction():
            self._write()
        with self._disowning(None):
            self._prove()
        self._settle()

    def _finish(self, rows: Chain, lines: Chain | None) -> Receipt:
        with self._transaction():
            self._write()
            receipt, number, expected = self._add_attempt(rows, lines.position if lines is not None else None)
        with self._disowning(number):
            self._prove()
            self._prove_attempt(number, expected)
        self._settle()
        return receipt

    def _write(self) -> None:
        for chain in self._chains:
            chain.write_pending()

    def _prove(self) -> None:
        for chain in self._chains:
            chain.prove_pending()

    def _settle(self) -> None:
        for chain in self._chains:
            if chain.owner[2] == ROWS:
                self._added += chain.fresh_rows
            chain.settle()

    def _add_attempt(self, rows: Chain, source: Position | None) -> tuple[Receipt, int, tuple[object, ...]]:
        given, position, sql, writer = self._transcript, rows.position, self._files.sql, self._files.writer
        chain = rows.ensure_chain()
        identity = self._files.digests.checkpoint(*rows.owner[:2], position.node)
        found = writer.one(sql["find_checkpoint"], (identity,))
        number = found[0] if found else writer.insert(sql["add_checkpoint"], (identity, chain, position.evidence))
        ((attempt,),) = writer.all(sql["next_attempt"], (number,))
        source_page, source_at = (source.page, source.at) if source is not None else (0, 0)
        added, erased = self._added + rows.fresh_rows, self._erased_rows(chain, position)
        row = writer.insert(sql["add_attempt"], (
            number, attempt, position.page, position.at, position.digest, source_page, source_at, position.rows, position.evidence,
            added, position.degraded, erased, name_bytes(given.host), name_bytes(given.trigger), given.at,
        ))  # fmt: skip
        receipt = Receipt(
            id=identity.hex(), attempt=attempt, verdict="archived", session=given.session, rows=position.rows,
            evidence=position.evidence, new_rows=added, degraded=position.degraded, erased=erased, host=given.host,
            trigger=given.trigger, at=from_micros(given.at), archive=str(self._files.path),
        )  # fmt: skip
        proof = (identity, chain, position.evidence, attempt, position.page, position.at, position.digest, source_page, source_at)
        return receipt, row, proof

    def _erased_rows(self, chain: int, position: Position) -> int:
        if self._files.writer.one(self._files.sql["any_erased"], (chain,)) is None:
            return 0
        pages = walk(self._files.writer, self._files.sql, position.page, position.at)
        return sum(count_rows(page.flags[:take], ERASED) for page, take in pages)

    def _prove_attempt(self, number: int, expected: tuple[object, ...]) -> None:
        if self._files.proof.one(self._files.sql["prove_attempt"], (number,)) != expected:
            path = str(self._files.path)
            raise StoreCorrupt(f"{path}: the attempt that was read back differs from what was written; check the disk", path=path)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Statements stop at the deadline; COMMIT, once begun, does not."""
        writer = self._files.writer
        writer.set_busy_ms(self._left_ms())
        with writer.transaction(), writer.progress(self._deadline):
            yield

    @contextmanager
    def _disowning(self, attempt: int | None) -> Iterator[None]:
        """What was committed and cannot be proven is taken back.  A proof reads one slice at most, and belongs to its commit: no
        deadline stops it."""
        try:
            yield
        except BaseException:  # also an interruption: what nobody proved must not count
            with suppress(StoreError):  # as far as the disk lets us; the first error is the one to tell
                self._take_back(attempt)
            raise

    def _take_back(self, attempt: int | None) -> None:
        writer, sql = self._files.writer, self._files.sql
        writer.set_busy_ms(self._left_ms())
        with writer.transaction():
            if attempt is not None:
                writer.run(sql["drop_attempt"], (attempt,))
                writer.run(sql["drop_bare_checkpoints"])
            for chain in self._chains:
                chain.disown()

    # -- time ---------------------------------------------------------------------------------------------------------------

    def _left_ms(self) -> int:
        return max(1, int((self._deadline - time.monotonic()) * 1000))

    def _expired(self) -> bool:
        return time.monotonic() >= self._soft

    def _stop(self, chain: Chain, total: int) -> None:
        if self._pending_bytes():
            self._store()
        done = chain.position.rows
        raise DeadlineExceeded(f"{self._files.path}: archived {done} of {total} rows by the deadline; the next call goes on from there")

    def _check_deadline(self) -> None:
        if time.monotonic() >= self._deadline:
            raise DeadlineExceeded(f"{self._files.path}: other processes kept changing this session's archive until the deadline")


def _as_it_is(line: Any) -> tuple[bytes, bool]:
    return line, False
