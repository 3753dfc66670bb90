"""The archive and the gate before it: the latest checkpoints verified, and what the gate would do."""

from __future__ import annotations

from collections.abc import Iterator

from memoryd.checkpoint import Gate
from memoryd.doctor._verdict import broken, doubtful, fine, remedy_of
from memoryd.errors import MemorydError
from memoryd.hosts import Check

__all__ = ["archive"]

_SAMPLE = 3
_RECEIPTS = 1000  # among these is looked for the latest refusal of a session


def archive(gate: Gate) -> Iterator[Check]:
    yield _sample(gate)
    yield _gate(gate)


def _sample(gate: Gate) -> Check:
    """Every byte of the latest checkpoints is read and every digest computed again."""
    try:
        latest = gate.shelf.list(limit=_SAMPLE)
        found = [gate.shelf.verify(info.id) for info in latest]
    except MemorydError as error:
        return broken("checkpoints", str(error), remedy_of(error))
    corrupt = [id for one in found for id in one.corrupt]
    if corrupt:
        said = f"{len(corrupt)} of the latest {len(found)} checkpoints are not as they were archived, such as {corrupt[0]}"
        return broken("checkpoints", said, "memoryd checkpoint verify names all; memoryd repair keeps aside what is damaged")
    if not found:
        return fine("checkpoints", "nothing is archived yet")
    return fine("checkpoints", f"the latest {len(found)} are as they were archived, {sum(one.rows for one in found)} rows")


def _gate(gate: Gate) -> Check:
    seen = gate.status(receipts=_RECEIPTS)
    if seen.mode != "block":
        said = f"the mode is {seen.mode}, by {seen.decided_by}: a compaction goes on although its transcript is not archived"
        return doubtful("gate", said, 'set gate.mode to "block", and unset MEMORYD_GATE')
    if seen.refusals:
        session, count = max(seen.refusals.items(), key=lambda item: item[1])
        causes = [one.get("cause", "") for one in seen.receipts if (one.get("session"), one.get("verdict")) == (session, "refused")]
        said = (
            f"sessions that are refused and not archived: {len(seen.refusals)} "
            f"({session[:64]}: {count} in a row, cause {causes[-1] if causes else 'unknown'}; see memoryd gate status)"
        )
        return doubtful("gate", said, "mend the cause and compact again; 'memoryd gate release SESSION --once' lets one pass")
    if seen.released:
        said = f"{len(seen.released)} sessions pass unarchived, by a release"
        return doubtful("gate", said, "memoryd gate release SESSION --clear")
    return fine("gate", "it refuses a compaction whose transcript is not archived")
