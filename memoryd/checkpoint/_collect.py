"""Garbage: pages that no attempt reaches, packs that no page reaches, bytes of packs that no row reaches."""

from __future__ import annotations

import attrs

from memoryd.checkpoint._files import Files, read_page
from memoryd.checkpoint._packs import Pack, blanked, compressed, plain_of
from memoryd.checkpoint._pages import unpack_places
from memoryd.core import Value
from memoryd.errors import StoreLocked

__all__ = ["LOCK_MS", "Collected", "blank_stale", "collect", "truncate_log"]

_PACKS_AT_ONCE = 16
_PAGES_AT_ONCE = 64
_PINNED_MS = 500
LOCK_MS = 5000


@attrs.frozen(slots=True, eq=False, repr=False)
class Collected(Value):
    """What a collection removed."""

    pages: int
    packs: int


def collect(files: Files, before: int) -> Collected:
    """Remove pages that nothing reaches and that were made before ``before`` (microseconds), then what only they reached.

    Children go before their parents, so that the tree is whole after each transaction.
    """
    files.writer.set_busy_ms(LOCK_MS)
    doomed = _unreachable(files, before)
    for start in range(0, len(doomed), _PAGES_AT_ONCE):
        with files.writer.transaction():
            still = set(_unreachable(files, before))
            for number in doomed[start : start + _PAGES_AT_ONCE]:
                if number in still:
                    _drop_page(files, number)
    return Collected(len(doomed), blank_stale(files))


def _unreachable(files: Files, before: int) -> list[int]:
    """Newest first: a page comes after those that it follows, so one pass settles what is reached."""
    reached = {tip for (tip,) in files.writer.all(files.sql["attempt_tips"])}
    doomed: list[int] = []
    for number, parent, created in files.writer.all(files.sql["page_links"]):
        if number in reached or created >= before:
            reached.add(parent)
        else:
            doomed.append(number)
    return doomed


def _drop_page(files: Files, number: int) -> None:
    for pack in {place.pack for place in unpack_places(read_page(files.writer, files.sql, number).places) if place.pack}:
        files.writer.run(files.sql["mark_stale"], (pack,))
    files.writer.run(files.sql["drop_page"], (number,))


def blank_stale(files: Files) -> int:
    """Blank what nothing reaches in every stale pack; the number of packs that went altogether."""
    dropped = 0
    while stale := [number for (number,) in files.writer.all(files.sql["stale_packs"], (_PACKS_AT_ONCE,))]:
        with files.writer.transaction():
            for number, ranges in _reached_ranges(files, stale).items():
                dropped += _blank(files, number, ranges)
    return dropped


def _reached_ranges(files: Files, packs: list[int]) -> dict[int, set[tuple[int, int]]]:
    ranges: dict[int, set[tuple[int, int]]] = {number: set() for number in packs}
    for (places,) in files.writer.execute(files.sql["places_of_all"]):
        for pack, offset, length in unpack_places(places):
            if pack in ranges:
                ranges[pack].add((offset, length))
    return ranges


def _blank(files: Files, number: int, ranges: set[tuple[int, int]]) -> int:
    run, sql = files.writer.run, files.sql
    run(sql["unmark_stale"], (number,))
    if not ranges:
        return run(sql["drop_pack"], (number,))
    row = files.writer.one(sql["read_pack"], (number,))
    if row is not None:
        pack = _without(Pack(*row), ranges)
        run(sql["blank_pack"], (pack.codec, pack.size, pack.data, number))
    return 0


def _without(pack: Pack, ranges: set[tuple[int, int]]) -> Pack:
    """A pack that cannot be read keeps nothing: its rows are lost already, and its bytes may be those to be forgotten."""
    try:
        return compressed(blanked(plain_of(pack), ranges))
    except ValueError:
        return Pack(0, 0, b"")


def truncate_log(files: Files) -> bool:
    """Fold the write-ahead log into the file and empty it; False where a reader still pins it."""
    files.writer.set_busy_ms(_PINNED_MS)
    try:
        files.writer.checkpoint("TRUNCATE")
    except StoreLocked:
        return False
    return True
