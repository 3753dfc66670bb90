"""Forgetting: rows are marked erased, their references dropped, and every byte that nothing else reaches is blanked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from memoryd.checkpoint._collect import LOCK_MS, blank_stale, truncate_log
from memoryd.checkpoint._files import ROWS, SOURCE, Files, name_bytes, read_page
from memoryd.checkpoint._packs import PackReader
from memoryd.checkpoint._pages import ERASED, EVIDENCE, NOWHERE, Digests, Page, Place, pack_places, unpack_places
from memoryd.checkpoint._select import Erasure, in_time, match_turns
from memoryd.core import Evidence, Forgotten, normalised, row_text
from memoryd.errors import StoreCorrupt

__all__ = ["Erasure", "erase", "erase_pages", "identities_of_turn"]

_JSON_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_QUOTE_CHARS = 12
Chosen = Callable[[Page, int], bool]


def identities_of_turn(digests: Digests, user_text: str, assistant_text: str) -> tuple[bytes, ...]:
    """The identities of the rows that say so; an empty text has no row."""
    said = (Evidence("user", normalised(user_text)), Evidence("assistant", normalised(assistant_text)))
    return tuple(evidence.identity(digests.identity) for evidence in said if evidence.text)


def erase(files: Files, erasure: Erasure) -> Forgotten:
    """Erase in every chain of the user that the erasure means, then blank.  Complete when repeated after a crash at any point."""
    files.writer.set_busy_ms(LOCK_MS)
    erased = quoted = 0
    sessions: dict[bytes, dict[int, int]] = {}
    for number, _, session, kind in files.writer.all(files.sql["chains"], (name_bytes(erasure.user),)):
        sessions.setdefault(session, {})[kind] = number
    wanted = None if erasure.session is None else name_bytes(erasure.session)
    for session, chains in sessions.items():
        if wanted is None or session == wanted:
            done, more = _Session(files, erasure, chains).erase()
            erased, quoted = erased + done, quoted + more
        elif erasure.turns:
            quoted += _count_quotes(files, chains, erasure.turns)
    blank_stale(files)
    return Forgotten(erased=erased, pending=0 if truncate_log(files) else 1, quoted=quoted)


def erase_pages(files: Files, chain: int, nodes: frozenset[bytes]) -> int:
    """Erase every row of ``chain`` that is, or hangs under, one of ``nodes``; inside the caller's transaction."""
    session = _Session(files, Erasure(""), {})
    return sum(session.erase_in(page, lambda page, index: page.node_at(index) in nodes) for page in _pages(files, chain))


def _count_quotes(files: Files, chains: dict[int, int], turns: Sequence[tuple[bytes, ...]]) -> int:
    found = match_turns(files.digests, _pages(files, chains.get(ROWS)), turns)
    return len(found.nodes) + found.quoted


def _pages(files: Files, chain: int | None) -> list[Page]:
    if chain is None:
        return []
    return [read_page(files.writer, files.sql, number) for (number,) in files.writer.all(files.sql["pages_of_chain"], (chain,))]


@attrs.define(slots=True, eq=False, repr=False)
class _Session:
    """One session of the user: its rows, and the lines of its sources."""

    files: Files
    erasure: Erasure
    chains: dict[int, int]
    quoted: int = 0

    def erase(self) -> tuple[int, int]:
        """(rows erased now, the same words elsewhere in the session).  All in one transaction, so that what is known is not lost."""
        with self.files.writer.transaction():
            rows, lines = (_pages(self.files, self.chains.get(kind)) for kind in (ROWS, SOURCE))
            chosen = self._choose(rows)
            texts = _Texts(self._taken(rows, chosen))
            erased = sum(self.erase_in(page, chosen) for page in rows)
            for page in lines:
                self.erase_in(page, self._choose_lines(page, texts))
        return erased, self.quoted

    def _choose(self, pages: list[Page]) -> Chosen:
        everything, nodes = self.erasure.turns is None, frozenset[bytes]()
        if self.erasure.turns is not None:
            found = match_turns(self.files.digests, pages, self.erasure.turns)
            nodes, self.quoted = found.nodes, found.quoted
        if self.erasure.everything and ROWS in self.chains:
            self._mark(self.chains[ROWS], {page.node for page in pages if page.parent == 0})
        first_seen: dict[bytes, int] = {}
        for page in pages:
            for index in range(len(page)):
                first_seen.setdefault(page.node_at(index), page.created)

        def chosen(page: Page, index: int) -> bool:
            node = page.node_at(index)
            since = first_seen[node] if page.flags[index] & EVIDENCE else page.created
            return (everything or node in nodes) and in_time(self.erasure, since)

        return chosen

    def _choose_lines(self, page: Page, texts: _Texts) -> Chosen:
        whole = self.erasure.turns is None and in_time(self.erasure, page.created)
        lines = _readable(self.files, page)
        return lambda _, index: whole or texts.are_in(lines[index])

    def _taken(self, pages: list[Page], chosen: Chosen) -> Iterable[bytes]:
        for page in pages:
            if any(chosen(page, index) for index in range(len(page))):
                rows = _readable(self.files, page)
                yield from (data for index, data in enumerate(rows) if data is not None and chosen(page, index))

    def erase_in(self, page: Page, chosen: Chosen) -> int:
        places, flags, marks = list(unpack_places(page.places)), bytearray(page.flags), set[bytes]()
        gone: list[Place] = []
        for index, place in enumerate(places):
            if not chosen(page, index):
                continue
            if self._stands_for_itself(page, index):
                marks.add(page.node_at(index))
            if place != NOWHERE:
                gone.append(place)
                places[index], flags[index] = NOWHERE, flags[index] | ERASED
        self._mark(page.chain, marks)
        for pack in {place.pack for place in gone}:
            self.files.writer.run(self.files.sql["mark_stale"], (pack,))
        if gone:
            self.files.writer.run(self.files.sql["move_rows"], (pack_places(places), bytes(flags), page.id))
        return len(gone)

    def _stands_for_itself(self, page: Page, index: int) -> bool:
        return bool(page.flags[index] & EVIDENCE) or page.node_at(index) == page.content_at(index)

    def _mark(self, chain: int, nodes: Iterable[bytes]) -> None:
        self.files.writer.executemany(self.files.sql["add_erased"], [(chain, node) for node in nodes])


def _readable(files: Files, page: Page) -> list[bytes | None]:
    """The rows of a page; a damaged pack has nothing to compare with, and goes all the same."""
    try:
        return PackReader(files.writer, files.sql).rows(unpack_places(page.places))
    except StoreCorrupt:
        return [None] * len(page)


class _Texts:
    """What the erased rows hold, to be found again in the lines of a source, whatever dialect it is in."""

    def __init__(self, rows: Iterable[bytes]) -> None:
        self._rows = set(rows)
        self._texts: set[str] = set()
        for data in self._rows:
            self._texts.update(_said(json.loads(data)))
        self._long = tuple(text for text in self._texts if len(text) >= _QUOTE_CHARS)

    def are_in(self, line: bytes | None) -> bool:
        if line is None or not self._rows:
            return False
        return line.strip() in self._rows or any(self._matches(text) for text in _strings(line))

    def _matches(self, text: str) -> bool:
        return text in self._texts or any(long in text for long in self._long)


def _said(row: Any) -> set[str]:
    if isinstance(row, str):
        return {normalised(row)} - {""}
    content = row.get("content")
    parts = content if isinstance(content, list) else []
    return {normalised(text) for text in (row_text(content), *(row_text([part]) for part in parts))} - {""}


def _strings(line: bytes) -> Iterable[str]:
    """Every JSON string of a line, whole JSON or not; of a line without any, the line itself."""
    found = _JSON_STRING.findall(line)
    for literal in found:
        try:
            yield normalised(json.loads(literal))
        except ValueError:
            yield normalised(literal.decode("utf-8", "replace"))
    if not found:
        yield normalised(line.decode("utf-8", "replace"))
