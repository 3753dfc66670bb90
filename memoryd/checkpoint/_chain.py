"""One chain during one call: it follows the stored pages as far as they agree with the rows, and grows new ones from there."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import attrs

from memoryd.checkpoint._batches import Batch
from memoryd.checkpoint._files import Files, erased_in, read_page
from memoryd.checkpoint._packs import Compressor, Pack, PackReader
from memoryd.checkpoint._pages import ERASED, NOWHERE, Digests, Page, Place, Position, common_rows, pack_places, unpack_places
from memoryd.core import DIGEST_SIZE
from memoryd.errors import StoreCorrupt

__all__ = ["Chain", "Identify", "Moved"]

Identify = Callable[[Digests, Batch, bytes], "tuple[list[bytes], bytearray]"]
_NEW = -1


class Moved(Exception):
    """Another process has added, collected or erased pages where this call wants to grow: begin again."""


@attrs.define(slots=True)
class _Growth:
    """A page that is not stored yet: the position that it follows, its batch, and where its rows will lie."""

    start: Position
    batch: Batch
    nodes: list[bytes]
    flags: bytearray
    places: list[Place]
    pack: Future[Pack] | None
    pack_digest: bytes
    size: int
    fresh: int
    page: Page | None = None


@attrs.define(slots=True)
class Chain:
    """``id`` is None until the chain's first page is stored.  ``position`` is how far the rows given so far are stored or pending.
    ``share`` False stores every new row again, for when bytes that are already there proved to be bad."""

    files: Files
    compressor: Compressor
    owner: tuple[bytes, bytes, int]
    identify: Identify
    created: int
    id: int | None
    position: Position
    share: bool = True
    pending: list[_Growth] = attrs.field(factory=list)
    _seen: tuple[int, ...] = ()
    _erased: frozenset[bytes] | None = None
    _known: dict[bytes, Place] | None = None

    @property
    def fresh_rows(self) -> int:
        """Pending rows whose bytes the archive does not have yet."""
        return sum(growth.fresh for growth in self.pending)

    @property
    def pending_bytes(self) -> int:
        return sum(growth.size for growth in self.pending)

    def feed(self, batch: Batch) -> None:
        """Take the next rows: follow what is stored, grow by the rest."""
        rest = batch if self.pending else self._follow(batch)
        if len(rest):
            self.pending.append(self._grow(rest))

    def _follow(self, batch: Batch) -> Batch:
        done, contents = 0, b"".join(batch.contents)
        while done < len(batch):
            rest = contents[done * DIGEST_SIZE :]
            page, count = self._best_child(rest)
            if page is None:
                break
            self.position = page.position(self.files.digests, count)
            done += count
        return batch.after(done)

    def _best_child(self, contents: bytes) -> tuple[Page | None, int]:
        children = self._children()
        self._seen = tuple(number for number, _ in children)
        best, count = None, 0
        for number, stored in children:
            common = common_rows(stored, contents)
            if common > count:
                best, count = number, common
        return (read_page(self.files.writer, self.files.sql, best), count) if best is not None else (None, 0)

    def _children(self) -> list[tuple[int, bytes]]:
        if self.id is None:
            return []
        where = (self.id, self.position.page, self.position.at)
        return [(number, contents) for number, contents in self.files.writer.all(self.files.sql["children"], where)]

    # -- growing ------------------------------------------------------------------------------------------------------------

    def _grow(self, batch: Batch) -> _Growth:
        start = self.position
        nodes, flags = self.identify(self.files.digests, batch, start.node)
        places, parts = self._place(batch, nodes, flags)
        digests = self.files.digests
        fresh = [content for content, place in zip(batch.contents, places, strict=True) if place.pack == _NEW]
        growth = _Growth(
            start, batch, nodes, flags, places, self.compressor.submit(b"".join(parts)) if parts else None,
            digests.pack(b"".join(fresh)), sum(map(len, batch.data)), len(fresh),
        )  # fmt: skip
        page = self._page(growth, 0, b"")
        self.position = page.position(digests, len(batch))
        return growth

    def _place(self, batch: Batch, nodes: list[bytes], flags: bytearray) -> tuple[list[Place], list[bytes]]:
        """Where each row will lie; rows that the chain has elsewhere are not stored again, erased ones not at all."""
        erased, known = self._erased_nodes(), self._known_rows()
        places: list[Place] = []
        parts: list[bytes] = []
        offset = 0
        for index, (data, content, node) in enumerate(zip(batch.data, batch.contents, nodes, strict=True)):
            if node in erased:
                flags[index] |= ERASED
                places.append(NOWHERE)
            elif content in known:
                places.append(known[content])
            else:
                places.append(Place(_NEW, offset, len(data)))
                parts.append(data)
                offset += len(data)
        return places, parts

    def _erased_nodes(self) -> frozenset[bytes]:
        if self._erased is None:
            self._erased = erased_in(self.files.writer, self.files.sql, self.id) if self.id is not None else frozenset()
        return self._erased

    def _known_rows(self) -> dict[bytes, Place]:
        """Where a fork finds the rows that its chain has already; growth at a tip has no use for it."""
        if self._known is None:
            self._known = self._load_known() if self.share and self._is_fork() else {}
        return self._known

    def _is_fork(self) -> bool:
        if self.pending or self.id is None:
            return False
        page = self.position.page
        return bool(self._seen) or (page > 0 and self.position.at < len(read_page(self.files.writer, self.files.sql, page)))

    def _load_known(self) -> dict[bytes, Place]:
        known: dict[bytes, Place] = {}
        for (number,) in self.files.writer.all(self.files.sql["pages_of_chain"], (self.id,)):
            page = read_page(self.files.writer, self.files.sql, number)
            for index, place in enumerate(unpack_places(page.places)):
                if place.pack:
                    known[page.content_at(index)] = place
        return known

    def _page(self, growth: _Growth, parent: int, places: bytes) -> Page:
        start = growth.start
        return Page(
            0, self.id or 0, parent, start.at, self.created, start.rows, start.evidence, start.degraded, start.digest, start.node,
            b"".join(growth.batch.contents), b"".join(growth.nodes), places, bytes(growth.flags),
        )  # fmt: skip

    # -- storing: inside the caller's transaction -----------------------------------------------------------------------------

    def write_pending(self) -> None:
        """Insert the pending pages.  Raises :class:`Moved` where the chain is not as it was followed."""
        self._check_still_there()
        if self.pending:
            self.ensure_chain()
        parent = None
        for growth in self.pending:
            growth.page = self._insert(growth, growth.start.page if parent is None else parent)
            parent = growth.page.id
        if parent is not None:
            self.position = attrs.evolve(self.position, page=parent)

    def _check_still_there(self) -> None:
        start = self.pending[0].start if self.pending else self.position
        if start.page and self.files.writer.one(self.files.sql["page_exists"], (start.page,)) is None:
            raise Moved
        if not self.pending:
            return
        if self.id is not None and erased_in(self.files.writer, self.files.sql, self.id) != self._erased_nodes():
            raise Moved
        chain = self.files.writer.one(self.files.sql["find_chain"], self.owner)
        where = (chain[0] if chain else 0, start.page, start.at)
        if tuple(row[0] for row in self.files.writer.all(self.files.sql["children"], where)) != self._seen:
            raise Moved

    def ensure_chain(self) -> int:
        """The chain's number, made now if there was none."""
        found = self.files.writer.one(self.files.sql["find_chain"], self.owner)
        self.id = int(found[0]) if found else self.files.writer.insert(self.files.sql["add_chain"], self.owner)
        return self.id

    def _insert(self, growth: _Growth, parent: int) -> Page:
        pack = self._store_pack(growth)
        places = pack_places([place if place.pack != _NEW else (pack, place.offset, place.length) for place in growth.places])
        page = self._page(growth, parent, places)
        number = self.files.writer.insert(self.files.sql["add_page"], attrs.astuple(page)[1:])
        return attrs.evolve(page, id=number)

    def _store_pack(self, growth: _Growth) -> int:
        if growth.pack is None:
            return 0
        found = self.files.writer.one(self.files.sql["find_pack"], (growth.pack_digest,))
        if found is not None and self.share:
            return int(found[0])
        pack, digest = growth.pack.result(), growth.pack_digest if found is None else None
        return self.files.writer.insert(self.files.sql["add_pack"], (digest, pack.codec, pack.size, pack.data))

    # -- after the commit -----------------------------------------------------------------------------------------------------

    def prove_pending(self) -> None:
        """Re-read the new pages through the second connection and compare; raises :class:`StoreCorrupt` where they differ."""
        for growth in self.pending:
            if growth.page is not None:
                self._prove(growth, growth.page)

    def _prove(self, growth: _Growth, written: Page) -> None:
        stored = read_page(self.files.proof, self.files.sql, written.id)
        rows = PackReader(self.files.proof, self.files.sql).rows(unpack_places(stored.places))
        given = [None if flag & ERASED else data for flag, data in zip(growth.flags, growth.batch.data, strict=True)]
        end = stored.digest_at(self.files.digests, len(stored))
        if stored != written or rows != given or end != written.digest_at(self.files.digests, len(written)):
            path = str(self.files.path)
            raise StoreCorrupt(f"{path}: what was read back differs from what was written; check the disk", path=path)

    def settle(self) -> None:
        """The pending pages are stored and proven."""
        self.pending.clear()
        self._seen = ()

    def disown(self) -> None:
        """Take back pages that could not be proven, so that no later receipt rests on them; inside a transaction of its own."""
        run, sql = self.files.writer.run, self.files.sql
        for growth in reversed(self.pending):
            if growth.page is None:
                continue
            run(sql["drop_page"], (growth.page.id,))
            for pack in {place.pack for place in unpack_places(growth.page.places) if place.pack}:
                run(sql["unshare_pack"], (pack,))
                run(sql["mark_stale"], (pack,))
