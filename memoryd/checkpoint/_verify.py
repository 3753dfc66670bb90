"""Verification: every stored byte is read and every digest recomputed."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from memoryd.checkpoint._files import Files, read_page
from memoryd.checkpoint._packs import PackReader
from memoryd.checkpoint._pages import ERASED, NOWHERE, Page, count_rows, root_of, unpack_places
from memoryd.core import Verification
from memoryd.errors import StoreCorrupt

__all__ = ["Progress", "verify"]

Progress = Callable[[int, int], None]
"""Called with (pages done, pages in all)."""


def verify(files: Files, id: bytes | None, on_progress: Progress | None) -> Verification:
    """Check all of the archive, or what the checkpoint ``id`` reaches.  Raises only where the file cannot be read at all."""
    with files.reader.transaction("DEFERRED"):
        return _Check(files).run(id, on_progress)


@attrs.define(slots=True, eq=False, repr=False)
class _Check:
    files: Files
    good: dict[int, int] = attrs.field(factory=dict)
    """For each page, how many of its rows are sound together with all that they follow."""
    rows: int = 0
    erased: int = 0

    def run(self, id: bytes | None, on_progress: Progress | None) -> Verification:
        attempts = [row for row in self.files.reader.all(self.files.sql["all_attempts"]) if id is None or row[0] == id]
        pages = self._pages(attempts, everything=id is None)
        for done, number in enumerate(pages, 1):
            self.good[number] = self._sound_rows(number)
            if on_progress is not None:
                on_progress(done, len(pages))
        corrupt = dict.fromkeys(row[0].hex() for row in attempts if not self._is_sound(*row[1:]))
        return Verification(len({row[0] for row in attempts}), self.rows, self.erased, tuple(corrupt))

    def _pages(self, attempts: list[tuple[bytes, int, int, bytes, int, int]], *, everything: bool) -> list[int]:
        reader, sql = self.files.reader, self.files.sql
        if everything:
            return [number for (number,) in reader.all(sql["all_pages"])]
        tips = {tip for _, page, at, _, source, lines in attempts for tip in ((page, at), (source, lines))}
        return sorted({number for tip in tips for number, _ in reader.all(sql["walk"], tip)})

    def _is_sound(self, page: int, at: int, digest: bytes, source: int, lines: int) -> bool:
        if at > self.good.get(page, 0) or lines > self.good.get(source, 0):
            return False
        return page == 0 or read_page(self.files.reader, self.files.sql, page).digest_at(self.files.digests, at) == digest

    def _sound_rows(self, number: int) -> int:
        """Pages come after those that they follow, so what is before is known."""
        try:
            page = read_page(self.files.reader, self.files.sql, number)
        except StoreCorrupt:
            return 0
        self.rows += len(page)
        self.erased += count_rows(page.flags, ERASED)
        return self._sound_prefix(page) if self._follows(page) else 0

    def _follows(self, page: Page) -> bool:
        if page.parent == 0:
            return page.base == page.node == self._root(page.chain)
        if page.at > self.good.get(page.parent, 0):
            return False
        parent = read_page(self.files.reader, self.files.sql, page.parent)
        return page.base == parent.digest_at(self.files.digests, page.at) and page.node == parent.node_at(page.at - 1)

    def _root(self, chain: int) -> bytes:
        owner = self.files.reader.one(self.files.sql["chain_owner"], (chain,))
        return root_of(self.files.digests, *owner).digest if owner is not None else b""

    def _sound_prefix(self, page: Page) -> int:
        """How many rows from the start still give their digest, or are erased by intent."""
        packs = PackReader(self.files.reader, self.files.sql)
        for index, (flag, place) in enumerate(zip(page.flags, unpack_places(page.places), strict=True)):
            if flag & ERASED and place == NOWHERE:
                continue
            try:
                (data,) = packs.rows((place,))
            except StoreCorrupt:
                return index
            if data is None or self.files.digests.row(data) != page.content_at(index):
                return index
        return len(page)
