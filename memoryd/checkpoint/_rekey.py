"""Every digest of an archive made anew under another key; what is stored, and what is reached, stays as it is."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable

import attrs

from memoryd.checkpoint._files import SOURCE, Files, read_page
from memoryd.checkpoint._packs import PackReader
from memoryd.checkpoint._pages import EVIDENCE, Digests, Page, Position, root_of, unpack_places
from memoryd.core import DIGEST_SIZE, evidence_of
from memoryd.errors import StoreCorrupt

__all__ = ["Retire", "rekey_files"]

Retire = Callable[[bytes], bytes]
"""What stands, under the new key, for a digest under the old one whose bytes are gone."""


def rekey_files(files: Files, new: Digests, retire: Retire) -> None:
    """Do so, in one transaction.  Nobody else uses the archive.

    Ids of checkpoints change, as they are digests.  A row that was erased cannot be digested anew: what stands for it is ``retire`` of
    its old digest, and it is known again by :class:`~memoryd.checkpoint._retired.Retired`.
    """
    with files.writer.transaction():
        _Rekeying(files, new, retire).run()


@attrs.define(slots=True, eq=False, repr=False)
class _Rekeying:
    files: Files
    new: Digests
    retire: Retire
    marked: dict[int, set[bytes]] = attrs.field(factory=lambda: defaultdict(set))
    """The old nodes of each chain that stay erased."""
    fresh: dict[int, dict[bytes, bytes]] = attrs.field(factory=lambda: defaultdict(dict))
    """What these are under the new key; and the contents of erased rows, which are marked too."""

    def run(self) -> None:
        writer, sql = self.files.writer, self.files.sql
        for chain, node in writer.all(sql["all_marks"]):
            self.marked[chain].add(node)
        for (number,) in writer.all(sql["all_pages"]):  # a page comes after those that it follows
            self._page(read_page(writer, sql, number))
        for row in writer.all(sql["all_tips"]):
            self._attempt(*row)
        self._mark()
        writer.run(sql["unshare_packs"])

    def _root(self, chain: int) -> Position:
        owner = self.files.writer.one(self.files.sql["chain_owner"], (chain,))
        if owner is None:
            path = str(self.files.path)
            raise StoreCorrupt(f"{path}: a chain has no owner; restore the archive from a backup", path=path)
        return root_of(self.new, *owner)

    def _start(self, chain: int, page: int, at: int) -> Position:
        """A place in a chain whose pages up to there are done."""
        return read_page(self.files.writer, self.files.sql, page).position(self.new, at) if page else self._root(chain)

    def _page(self, page: Page) -> None:
        start = self._start(page.chain, page.parent, page.at)
        if page.parent == 0:
            self._learn(page.chain, page.node, start.node)
        contents, nodes = self._digests(page, start.node)
        self.files.writer.run(self.files.sql["rekey_page"], (start.digest, start.node, b"".join(contents), b"".join(nodes), page.id))

    def _digests(self, page: Page, node: bytes) -> tuple[list[bytes], list[bytes]]:
        owner = self.files.writer.one(self.files.sql["chain_owner"], (page.chain,))
        is_source = owner is not None and owner[2] == SOURCE
        contents, nodes = [], []
        for index, row in enumerate(self._rows(page)):
            content = self.new.row(row) if row is not None else self.retire(page.content_at(index))
            if row is None:
                self.fresh[page.chain][page.content_at(index)] = content
            if is_source:
                node = content
            elif page.flags[index] & EVIDENCE:
                node = self._node(page.node_at(index), node, row)
            self._learn(page.chain, page.node_at(index), node)
            contents.append(content)
            nodes.append(node)
        return contents, nodes

    def _node(self, old: bytes, before: bytes, row: bytes | None) -> bytes:
        evidence = evidence_of(json.loads(row), self.files.digests.marker) if row is not None else None
        return self.retire(old) if evidence is None else self.new.node(before, evidence.identity(self.new.identity))

    def _rows(self, page: Page) -> list[bytes | None]:
        """A row that is damaged counts as one whose bytes are gone: it stays damaged."""
        try:
            return PackReader(self.files.writer, self.files.sql).rows(unpack_places(page.places))
        except StoreCorrupt:
            return [None] * (len(page.contents) // DIGEST_SIZE)

    def _learn(self, chain: int, old: bytes, node: bytes) -> None:
        if old in self.marked[chain]:
            self.fresh[chain][old] = node

    def _attempt(self, attempt: int, checkpoint: int, chain: int, page: int, at: int) -> None:
        writer, sql = self.files.writer, self.files.sql
        place = self._start(chain, page, at)
        owner = writer.one(sql["chain_owner"], (chain,))
        assert owner is not None, "asked for above"
        writer.run(sql["rekey_attempt"], (place.digest, attempt))
        writer.run(sql["rekey_checkpoint"], (self.new.checkpoint(*owner[:2], place.node), checkpoint))

    def _mark(self) -> None:
        writer, sql = self.files.writer, self.files.sql
        writer.run(sql["drop_marks"])
        for chain in self.marked.keys() | self.fresh.keys():
            fresh = self.fresh[chain]
            new = {fresh.get(old) or self.retire(old) for old in self.marked[chain]} | set(fresh.values())
            writer.executemany(sql["add_erased"], [(chain, node) for node in new])
