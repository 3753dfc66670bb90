"""What was forgotten in one copy of an archive is forgotten in another: the nodes that stay erased, taken over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import attrs

from memoryd.checkpoint._collect import LOCK_MS, blank_stale, truncate_log
from memoryd.checkpoint._erase import erase_pages
from memoryd.checkpoint._files import Files, erased_in
from memoryd.core import Value

__all__ = ["ErasedMark", "erase_marked", "erased_marks"]


@attrs.frozen(slots=True, eq=False, repr=False)
class ErasedMark(Value):
    """A node of a chain that stays erased.  It means the same in every archive under the same key."""

    user: bytes
    session: bytes
    kind: int
    node: bytes


def erased_marks(files: Files) -> list[ErasedMark]:
    """Everything that stays erased in this archive."""
    return [ErasedMark(*row) for row in files.reader.all(files.sql["all_erased"])]


def erase_marked(files: Files, marks: Iterable[ErasedMark]) -> int:
    """Erase what ``marks`` stand for, where this archive has it; the number of rows.  Again does no harm."""
    files.writer.set_busy_ms(LOCK_MS)
    by_chain: dict[tuple[bytes, bytes, int], set[bytes]] = defaultdict(set)
    for mark in marks:
        by_chain[mark.user, mark.session, mark.kind].add(mark.node)
    erased = 0
    for owner, nodes in by_chain.items():
        found = files.writer.one(files.sql["find_chain"], owner)
        if found is not None and not nodes <= erased_in(files.writer, files.sql, found[0]):
            with files.writer.transaction():
                erased += erase_pages(files, found[0], frozenset(nodes))
                files.writer.executemany(files.sql["add_erased"], [(found[0], node) for node in nodes])
    if erased:
        blank_stale(files)
        truncate_log(files)
    return erased
