"""The archive's file: its connections, its statements, and reading pages from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from memoryd.checkpoint._pages import Digests, Page
from memoryd.checkpoint._retired import Retired
from memoryd.errors import StoreCorrupt
from memoryd.store import Connection, Options, ProfileStore, Schema, connect, load_queries, prepare

__all__ = [
    "ARCHIVE", "ROWS", "SOURCE", "Files", "erased_in", "name_bytes", "name_text", "open_files", "read_page", "walk",
]  # fmt: skip

ARCHIVE = "archive.db"
ROWS, SOURCE = 0, 1


@attrs.frozen(slots=True, eq=False, repr=False)
class Files:
    """``writer`` syncs each commit; ``proof`` re-reads what it wrote; ``reader`` serves everything else.  Each has one user at a time."""

    path: Path
    writer: Connection
    proof: Connection
    reader: Connection
    sql: Mapping[str, str]
    digests: Digests
    retired: Retired

    def close(self) -> None:
        for connection in (self.reader, self.proof, self.writer):
            connection.close()


def open_files(profile: ProfileStore, path: Path, vfs: str | None) -> Files:
    """Create or bring up the archive at ``path`` and open it.  Raises :class:`~memoryd.errors.StoreError`."""
    prepare(path, Schema.load("archive", "memoryd.checkpoint"), profile, vfs=vfs)
    opened: list[Connection] = []
    try:
        for options in (Options(synchronous="FULL"), Options(readonly=True, cache_kib=512), Options(readonly=True)):
            opened.append(connect(path, options, vfs=vfs))
    except BaseException:  # whatever stops the third, the first two are nobody's
        for connection in opened:
            connection.close()
        raise
    writer, proof, reader = opened
    sql = load_queries("memoryd.checkpoint")
    marks = reader.all(sql["all_marks"]) if profile.earlier else ()
    retired = Retired(profile.key, profile.earlier, frozenset(mark for _, mark in marks))
    return Files(path, writer, proof, reader, sql, Digests.of(profile.key), retired)


def read_page(connection: Connection, sql: Mapping[str, str], number: int) -> Page:
    row = connection.one(sql["read_page"], (number,))
    if row is None:
        path = str(connection.path)
        raise StoreCorrupt(f"{path}: page {number} is missing; restore the archive from a backup, or from its second place", path=path)
    return Page(*row)


def walk(connection: Connection, sql: Mapping[str, str], page: int, at: int) -> Iterator[tuple[Page, int]]:
    """The pages from a chain's root to the first ``at`` rows of ``page``, each with how many of its rows count."""
    for number, take in reversed(connection.all(sql["walk"], (page, at))):
        yield read_page(connection, sql, number), take


def erased_in(connection: Connection, sql: Mapping[str, str], chain: int) -> frozenset[bytes]:
    """The nodes of ``chain`` that stay erased."""
    return frozenset(node for (node,) in connection.all(sql["erased_nodes"], (chain,)))


def name_bytes(name: str) -> bytes:
    """A name of any characters, lone surrogates included, as SQLite can hold it."""
    return name.encode("utf-8", "surrogatepass")


def name_text(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")
