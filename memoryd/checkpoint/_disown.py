"""Rows whose bytes are damaged are followed no more: who archives the same transcript again stores them anew."""

from __future__ import annotations

import secrets

from memoryd.checkpoint._files import Files, read_page
from memoryd.checkpoint._packs import PackReader
from memoryd.checkpoint._pages import ERASED, NOWHERE, Page, Place, unpack_places
from memoryd.core import DIGEST_SIZE
from memoryd.errors import StoreCorrupt

__all__ = ["disown"]


def disown(files: Files) -> int:
    """Take the digests from such rows, so that no new checkpoint rests on them; how many those are.  What is damaged stays so."""
    disowned = 0
    with files.writer.transaction():
        packs = PackReader(files.writer, files.sql)
        for (number,) in files.writer.all(files.sql["all_pages"]):
            page = read_page(files.writer, files.sql, number)
            bad = [index for index, place in enumerate(unpack_places(page.places)) if not _is_whole(files, packs, page, index, place)]
            if bad:
                files.writer.run(files.sql["set_contents"], (_without(page.contents, bad), number))
                disowned += len(bad)
    return disowned


def _is_whole(files: Files, packs: PackReader, page: Page, index: int, place: Place) -> bool:
    if place == NOWHERE:
        return bool(page.flags[index] & ERASED)
    try:
        (data,) = packs.rows((place,))
    except StoreCorrupt:
        return False
    return data is not None and files.digests.row(data) == page.content_at(index)


def _without(contents: bytes, rows: list[int]) -> bytes:
    changed = bytearray(contents)
    for index in rows:
        changed[index * DIGEST_SIZE : (index + 1) * DIGEST_SIZE] = secrets.token_bytes(DIGEST_SIZE)
    return bytes(changed)
