"""Recall on one reading connection: postings from the full-text index, ranked by :mod:`memoryd.recall`, made into hits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import attrs

from memoryd.core import Hit, Query
from memoryd.recall import (
    ANCHORS,
    QUOTED,
    SPOKEN,
    TIMED,
    UNNAMED,
    Asked,
    Language,
    Line,
    Term,
    Tokenize,
    analyse,
    anchors,
    idf,
    rank,
)
from memoryd.store import Connection, Row
from memoryd_local._hits import HitReader
from memoryd_local._near import Limits, LineRow, lines_around
from memoryd_local._rows import ASSISTANT, USER, blob, span, text

__all__ = ["Searcher"]

_LARGE = 20_000  # lines of a scope above which only the newest of a term are looked at
_POSTINGS = 4000  # how many those are
_COMPARED = 1000  # lines whose texts are compared with a quotation


@attrs.frozen(slots=True, eq=False, repr=False)
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


class _Search:
    """One query over one scope."""

    def __init__(self, searcher: Searcher, query: Query, scope: int, lines: int, tokens: int) -> None:
        self._of = searcher
        self._query = query
        self._scope = scope
        self._first, self._last = span(scope)
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
        best = anchors(postings, worth, max(ANCHORS, 2 * self._query.limit))
        quoting = self._quoting(asked, postings, worth) if asked.phrases else []
        rows = lines_around(self._of.connection, self._of.sql, self._first, [*best, *quoting], self._limits)
        lines = self._lines(rows, asked, quoting)
        ranked = rank(lines, postings, worth, asked, self._average)
        return self._reader.collect((one._replace(id=self._first + one.id) for one in ranked), self._query)

    def _limits_of(self, query: Query) -> Limits | None:
        if query.as_of is None and query.session is None and not query.labels:
            return None
        session = None
        if query.session is not None:
            rows = self._all("session_id", self._scope, blob(query.session))
            session = rows[0][0] if rows else -1
        labels = frozenset(row for row, names in self._labels.items() if _agrees(names, query.labels)) if query.labels else None
        return Limits(query.as_of, session, labels)

    def _posting(self, term: Term) -> set[int]:
        """The n of the newest lines that have the term, within the query's limits."""
        bounds = (_match(term), self._first, self._last)
        if self._limits is not None:
            rows = self._all("postings_within", *bounds, _POSTINGS, *self._limits.parameters())
        elif self._total > _LARGE:
            rows = self._all("newest_postings", *bounds, _POSTINGS)
        else:
            rows = self._all("postings", *bounds)
        return set(json.loads(f"[{rows[0][0] or ''}]"))

    def _quoting(self, asked: Asked, postings: Sequence[set[int]], worth: Sequence[float]) -> list[int]:
        """The lines that have every quotation of the query word for word."""
        said = self._reader.said(self._first + n for n in anchors(postings, worth, _COMPARED))
        return [line - self._first for line, one in said.items() if asked.is_quoted_in(one.text, self._of.tokenize)]

    def _lines(self, rows: Sequence[LineRow], asked: Asked, quoting: Sequence[int]) -> list[Line]:
        """What ranking takes, with the flags that only this query gives."""
        marked = dict.fromkeys(self._posting(asked.times), TIMED) if asked.times is not None else {}
        for line in quoting:
            marked[line] = marked.get(line, 0) | QUOTED
        spoken = self._spoken(asked.subject)
        return [
            (n, session, place, tokens, flags | marked.get(n, 0) | spoken.get((role, label), 0), at)
            for n, session, place, tokens, flags, at, label, role in rows
        ]

    def _spoken(self, subject: str | None) -> dict[tuple[int, int], int]:
        """The roles and labels under which the one who is asked about spoke."""
        if subject is None:
            return {}
        own = [(USER, label) for label in self._labels if subject == self._query.user]
        return dict.fromkeys(own + [(ASSISTANT, label) for label, names in self._labels.items() if names[0] == subject], SPOKEN)

    def _all(self, statement: str, *values: object) -> list[Row]:
        return self._of.connection.all(self._of.sql[statement], values)


def _match(term: Term) -> str:
    """The full-text expression for a term: quoted words.  A word is one token, so it holds no quote."""
    return (" AND " if term.whole else " OR ").join(f'"{word}"' for word in term.words)


def _agrees(names: Sequence[str], wanted: Mapping[str, str]) -> bool:
    have = dict(zip(("agent", "workspace", "platform"), names, strict=True))
    return all(have.get(label) == value for label, value in wanted.items())
