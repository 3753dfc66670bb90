"""Recall on one reading connection: postings from the full-text index, ranked by :mod:`memoryd.recall`, made into hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from memoryd.core import Hit, Query
from memoryd.recall import (
    ANCHORS,
    QUOTED,
    TIMED,
    UNNAMED,
    Asked,
    Language,
    Line,
    Scored,
    Term,
    Tokenize,
    analyse,
    anchors,
    idf,
    rank,
)
from memoryd.store import Connection, Row
from memoryd_local._hits import Found, HitReader
from memoryd_local._rows import ASSISTANT, USER, blob, id_list, span, text

__all__ = ["Searcher"]

_POSTINGS = 4000  # newest lines of a term that are looked at
_COMPARED = 1000  # lines whose texts are compared with a quotation


@attrs.frozen(slots=True)
class Searcher:
    """Answers queries of the backend ``name`` from the connection's current snapshot."""

    name: str
    connection: Connection
    sql: Mapping[str, str]
    language: Language
    tokenize: Tokenize

    def recall(self, query: Query) -> list[Hit]:
        """The best hits, best first; empty where the query has nothing to look for."""
        with self.connection.transaction("DEFERRED"):
            scope = self.connection.one(self.sql["scope_totals"], (blob(query.user),))
            return _Search(self, query, *scope).hits() if scope is not None and query.limit else []


@attrs.frozen(slots=True)
class _Limits:
    """What a query leaves out: lines after ``as_of``, of other sessions, with other labels; None: no such limit."""

    as_of: int | None
    session: int | None
    labels: frozenset[int] | None

    def parameters(self) -> tuple[int | None, int | None, str | None]:
        return self.as_of, self.session, None if self.labels is None else id_list(self.labels)

    def allow(self, row: Row) -> bool:
        """Whether a neighbour (which is of an allowed line's session) may be found, too."""
        return (self.as_of is None or row[8] <= self.as_of) and (self.labels is None or row[7] in self.labels)


class _Search:
    """One query over one scope."""

    def __init__(self, searcher: Searcher, query: Query, scope: int, lines: int, tokens: int) -> None:
        self._of = searcher
        self._query = query
        self._scope = scope
        self._total = lines
        self._average = tokens / max(lines, 1)
        self._labels = {row[0]: tuple(map(text, row[1:])) for row in self._all("labels_of_scope", scope)}
        self._limits = self._limits_of(query)
        self._reader = HitReader(searcher.name, searcher.connection, searcher.sql, self._labels)

    def hits(self) -> list[Hit]:
        actors = {self._query.user, *(agent for agent, _, _ in self._labels.values())} - UNNAMED
        asked = analyse(self._query.text, self._of.language, self._of.tokenize, actors)
        if not asked:
            return []
        postings = [self._posting(term) for term in asked.terms]
        worth = [idf(self._total, len(ids)) for ids in postings]
        quoting = self._quoting(asked, postings, worth) if asked.phrases else []
        best = anchors(postings, worth, max(ANCHORS, 2 * self._query.limit))
        rows = self._around([*best, *quoting])
        flags = self._flags(asked, quoting)
        lines = [self._line(row, flags.get(row[0], 0)) for row in rows.values()]
        scored = rank(lines, postings, worth, asked, self._average)
        return self._reader.collect([_found(one, rows[one.line.id]) for one in scored], self._query)

    def _limits_of(self, query: Query) -> _Limits | None:
        if query.as_of is None and query.session is None and not query.labels:
            return None
        session = None
        if query.session is not None:
            rows = self._all("session_id", self._scope, blob(query.session))
            session = rows[0][0] if rows else -1
        labels = frozenset(row for row, names in self._labels.items() if _agrees(names, query.labels)) if query.labels else None
        return _Limits(query.as_of, session, labels)

    def _posting(self, term: Term) -> list[int]:
        """The newest lines that have the term, newest first, within the query's limits."""
        bounds = (_match(term), *span(self._scope), _POSTINGS)
        if self._limits is None:
            return [row[0] for row in self._all("postings", *bounds)]
        return [row[0] for row in self._all("postings_within", *bounds, *self._limits.parameters())]

    def _flags(self, asked: Asked, quoting: Sequence[int]) -> dict[int, int]:
        """What only this query makes of lines, by id."""
        flags = dict.fromkeys(self._posting(asked.times), TIMED) if asked.times is not None else {}
        for line in quoting:
            flags[line] = flags.get(line, 0) | QUOTED
        return flags

    def _quoting(self, asked: Asked, postings: Sequence[Sequence[int]], worth: Sequence[float]) -> list[int]:
        """The lines that have every quotation of the query word for word."""
        candidates = self._all("lines_by_id", id_list(anchors(postings, worth, _COMPARED)))
        texts = self._reader.texts([(row[0], row[1], row[2]) for row in candidates])
        return [line for line, value in texts.items() if asked.is_quoted_in(value, self._of.tokenize)]

    def _around(self, best: Sequence[int]) -> dict[int, Row]:
        """The rows of the best lines and of their neighbours, by id."""
        limits = self._limits
        rows = self._all("lines_around", id_list(best))
        return {row[0]: row for row in rows if limits is None or limits.allow(row)}

    def _line(self, row: Row, more_flags: int) -> Line:
        id, _, role, session, place, tokens, flags, label, at = row
        return Line(id, session, place, tokens, flags | more_flags, self._actor(role, label), at)

    def _actor(self, role: int, label: int) -> str:
        if role == USER:
            return self._query.user
        return self._labels[label][0] if role == ASSISTANT else ""

    def _all(self, statement: str, *values: object) -> list[Row]:
        return self._of.connection.all(self._of.sql[statement], values)


def _match(term: Term) -> str:
    """The full-text expression for a term: quoted words.  A word is one token, so it holds no quote."""
    return (" AND " if term.whole else " OR ").join(f'"{word}"' for word in term.words)


def _agrees(names: Sequence[str], wanted: Mapping[str, str]) -> bool:
    have = dict(zip(("agent", "workspace", "platform"), names, strict=True))
    return all(have.get(label) == value for label, value in wanted.items())


def _found(scored: Scored, row: Row) -> Found:
    return Found(scored.score, scored.why, line=row[0], event=row[1], role=row[2])
