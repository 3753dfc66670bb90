"""One chain during one call: it follows the stored pages as far as they agree with the rows, and grows new ones from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from memoryd.checkpoint._batches import Batch
from memoryd.checkpoint._files import Files, erased_in, read_page
from memoryd.checkpoint._packs import Pack, PackReader, compressed
from memoryd.checkpoint._pages import (
    ERASED,
    NOWHERE,
    OWN,
    Digests,
    Page,
    Place,
    Position,
    common_rows,
    pack_places,
    unpack_places,
)
from memoryd.core import DIGEST_SIZE
from memoryd.errors import StoreCorrupt

__all__ = ["Chain", "Identify", "Moved"]

Identify: TypeAlias = Callable[[Digests, Batch, bytes], tuple[list[bytes], bytearray]]
"""The node of each row after a node, and its flags."""


class Moved(Exception):
    """Another process has added, collected or erased pages where this call wants to grow: begin again."""


@attrs.define(slots=True, eq=False, repr=False)
class _Growth:
    """A page that is not stored yet: the position that it follows and the one that it ends at, its batch, and where its rows will lie
    (in the pack ``OWN``: in one of its own).  ``pack`` is None where the archive has a pack with that digest, or where no row needs one."""

    start: Position
    end: Position
    batch: Batch
    nodes: list[bytes]
    flags: bytearray
    places: list[tuple[int, int, int]]
    fresh: int
    pack: Pack | None
    pack_digest: bytes
    page: Page | None = None


@attrs.define(slots=True, eq=False, repr=False)
class Chain:
    """``id`` is None until the chain's first page is stored.  ``position`` is how far the rows given so far are stored or pending.
    ``share`` False stores every new row again, for when bytes that are already there proved to be bad."""

    files: Files
    owner: tuple[bytes, bytes, int]
    identify: Identify
    created: int
    id: int | None
    _position: Position
    share: bool = True
    pending: list[_Growth] = attrs.field(factory=list)
    _followed: tuple[int, int] | None = None
    _seen: tuple[int, ...] = ()
    _erased: frozenset[bytes] | None = None
    _known: dict[bytes, Place] | None = None

    @property
    def fresh_rows(self) -> int:
        """Pending rows whose bytes the archive does not have yet."""
        return sum(growth.fresh for growth in self.pending)

    @property
    def pending_bytes(self) -> int:
        return sum(growth.batch.size for growth in self.pending)

    def feed(self, batch: Batch) -> None:
        """Take the next rows: follow what is stored, grow by the rest."""
        rest = batch if self.pending else self._follow(batch)
        if len(rest):
            self.pending.append(self._grow(rest))

    @property
    def position(self) -> Position:
        if self._followed is not None:  # worked out when asked for: most pages are only passed
            number, at = self._followed
            self._position = read_page(self.files.writer, self.files.sql, number).position(self.files.digests, at)
            self._followed = None
        return self._position

    def _follow(self, batch: Batch) -> Batch:
        done, contents = 0, b"".join(batch.contents)
        while done < len(batch):
            page, count = self._best_child(contents[done * DIGEST_SIZE :], batch.data[done:] if self.files.retired else ())
            if not count:
                break
            self._followed = page, count
            done += count
        return batch.after(done)

    def _best_child(self, contents: bytes, rows: Sequence[bytes]) -> tuple[int, int]:
        """The page after this position that has the most of ``contents``, and how many of its rows agree.  ``rows`` are their bytes,
        where some may have been erased under an earlier key."""
        children, retired = self._children(), self.files.retired
        self._seen = tuple(page for page, _ in children)
        agreeing = ((common_rows(stored, retired.seen_as(stored, contents, rows) if rows else contents), page) for page, stored in children)
        count, page = max(agreeing, default=(0, 0))
        return page, count

    def _children(self) -> list[tuple[int, bytes]]:
        if self.id is None:
            return []
        where = (self.id, *(self._followed or (self._position.page, self._position.at)))
        return [(page, contents) for page, contents in self.files.writer.all(self.files.sql["children"], where)]

    # -- growing ------------------------------------------------------------------------------------------------------------

    def _grow(self, batch: Batch) -> _Growth:
        start, digests = self.position, self.files.digests
        nodes, flags = self.identify(digests, batch, start.node)
        places = self._place(batch, nodes, flags)
        fresh = [index for index, place in enumerate(places) if place[0] == OWN]
        digest = digests.pack(b"".join([batch.contents[index] for index in fresh]))
        stored = not fresh or (self.share and self._find_pack(digest) is not None)
        pack = None if stored else compressed(b"".join([batch.data[index] for index in fresh]))
        growth = _Growth(start, start, batch, nodes, flags, places, len(fresh), pack, digest)
        growth.end = self._position = self._page(growth, 0, b"").position(digests, len(batch))
        return growth

    def _place(self, batch: Batch, nodes: list[bytes], flags: bytearray) -> list[tuple[int, int, int]]:
        """Where each row will lie; rows that the chain has elsewhere are not stored again, erased ones not at all."""
        erased, known = self._erased_nodes(), self._known_rows()
        places: list[tuple[int, int, int]] = []
        offset = 0
        for index, (content, data) in enumerate(zip(batch.contents, batch.data, strict=True)):
            if erased and nodes[index] in erased:
                flags[index] |= ERASED
                places.append(NOWHERE)
            elif known and content in known:
                places.append(known[content])
            else:
                places.append((OWN, offset, len(data)))
                offset += len(data)
        return places

    def _find_pack(self, digest: bytes) -> int | None:
        found = self.files.writer.one(self.files.sql["find_pack"], (digest,))
        return int(found[0]) if found is not None else None

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
            self._position = attrs.evolve(self.position, page=parent)

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
        if tuple(row[0] for row in self.files.writer.all(self.files.sql["child_ids"], where)) != self._seen:
            raise Moved

    def ensure_chain(self) -> int:
        """The chain's number, made now if there was none."""
        found = self.files.writer.one(self.files.sql["find_chain"], self.owner)
        self.id = int(found[0]) if found else self.files.writer.insert(self.files.sql["add_chain"], self.owner)
        return self.id

    def _insert(self, growth: _Growth, parent: int) -> Page:
        page = self._page(growth, parent, pack_places(growth.places, self._store_pack(growth)))
        number = self.files.writer.insert(self.files.sql["add_page"], attrs.astuple(page)[1:])
        return attrs.evolve(page, id=number)

    def _store_pack(self, growth: _Growth) -> int:
        if not growth.fresh:
            return 0
        found = self._find_pack(growth.pack_digest)
        if growth.pack is None:
            if found is None:
                raise Moved
            return found
        digest = growth.pack_digest if found is None else None
        return self.files.writer.insert(
            self.files.sql["add_pack"], (digest, growth.pack.codec, growth.pack.size, growth.pack.data)
        )

    # -- after the commit -----------------------------------------------------------------------------------------------------

    def prove_pending(self) -> None:
        """Re-read the new pages through the second connection and compare; raises :class:`StoreCorrupt` where they differ."""
        for growth in self.pending:
            if growth.page is not None:
                self._prove(growth, growth.page)

    def _prove(self, growth: _Growth, written: Page) -> None:
        stored = read_page(self.files.proof, self.files.sql, written.id)
        same = stored == written and stored.digest_at(self.files.digests, len(stored)) == growth.end.digest
        if not (same and self._packs_hold(growth, stored)):
            path = str(self.files.path)
            raise StoreCorrupt(f"{path}: what was read back differs from what was written; check the disk", path=path)

    def _packs_hold(self, growth: _Growth, stored: Page) -> bool:
        """A pack of our own has to be what was written; rows that lie in packs of others are read and compared."""
        own = 0
        if growth.pack is not None:
            own = next(place.pack for place, (pack, *_) in zip(unpack_places(stored.places), growth.places, strict=True) if pack == OWN)
            if self.files.proof.one(self.files.sql["read_pack"], (own,)) != attrs.astuple(growth.pack):
                return False
            if growth.fresh == len(growth.batch):
                return True
        places = list(unpack_places(stored.places))
        others = [index for index, place in enumerate(places) if place.pack not in (0, own)]
        rows = PackReader(self.files.proof, self.files.sql).rows([places[index] for index in others])
        return rows == [growth.batch.data[index] for index in others]

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
