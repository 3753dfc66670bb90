"""Recall over events that no index has yet: the short tail of the log, read and ranked in memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from memoryd.core import Entry, Hit, MemoryWrite, Query, Turn, from_micros
from memoryd.recall._languages import language_named
from memoryd.recall._rank import Line, idf, rank
from memoryd.recall._tail import Said, texts_of
from memoryd.recall._terms import UNNAMED, Asked, analyse
from memoryd.recall._text import QUOTED, SPOKEN, TIMED, Indexed, Tokenize, prepare
from memoryd.recall._tokens import tokenizer

__all__ = ["scan_tail"]

_LEAST_TOTAL = 1000  # the tail is part of a larger memory: its few texts do not make a word common
_own = threading.local()


def scan_tail(entries: Sequence[Entry], query: Query, *, language: str = "en") -> list[Hit]:
    """The hits among ``entries`` (log order) for ``query``, best first, with scores on the scale of the local backend's.

    Later entries count: an edited turn shows its new text, a deleted or forgotten thing nothing.
    """
    data, tokenize = language_named(language), _tokenizer()
    said = [one for one in texts_of(entries) if _wanted(one, query)]
    asked = analyse(query.text, data, tokenize, {one.actor for one in said} - UNNAMED)
    if not asked or not said:
        return []
    best: dict[bytes, Hit] = {}
    for one, score, why in _ranked(said, asked, tokenize):
        best.setdefault(one.event.event_id, _hit(one, score, why))
    return list(best.values())[: query.limit]


def _ranked(said: Sequence[Said], asked: Asked, tokenize: Tokenize) -> list[tuple[Said, float, Mapping[str, float]]]:
    indexed = [prepare(one.searched) for one in said]
    stems = [frozenset(stem for _, _, stem in tokenize(one.text.encode())) for one in indexed]
    lines = [
        _line(number, one, indexed[number], _flags(one, stems[number], asked, tokenize)) for number, one in enumerate(said)
    ]
    postings = [{number for number, have in enumerate(stems) if term.is_in(have)} for term in asked.terms]
    worth = [idf(max(len(said), _LEAST_TOTAL), len(ids)) for ids in postings]
    ranked = rank(lines, postings, worth, asked, sum(one.tokens for one in indexed) / len(indexed))
    return [(said[one.id], one.score, one.why) for one in ranked]


def _wanted(said: Said, query: Query) -> bool:
    scope = said.event.scope
    if scope.user != query.user or (query.session is not None and scope.session != query.session):
        return False
    labels = {"agent": scope.agent, "workspace": scope.workspace, "platform": scope.platform}
    if any(labels.get(name) != value for name, value in query.labels.items()):
        return False
    return query.as_of is None or said.event.at <= query.as_of


def _flags(said: Said, stems: frozenset[str], asked: Asked, tokenize: Tokenize) -> int:
    timed = TIMED if asked.times is not None and asked.times.is_in(stems) else 0
    spoken = SPOKEN if asked.subject is not None and said.actor == asked.subject else 0
    return timed | spoken | (QUOTED if asked.is_quoted_in(said.text, tokenize) else 0)


def _line(number: int, said: Said, indexed: Indexed, more_flags: int) -> Line:
    thread = None if said.thread is None else hash(said.thread)
    return number, thread, said.place, indexed.tokens, indexed.flags | more_flags, said.event.at


def _hit(said: Said, score: float, why: Mapping[str, float]) -> Hit:
    event, scope = said.event, said.event.scope
    labels = {"agent": scope.agent, "workspace": scope.workspace, "platform": scope.platform}
    return Hit(
        id=event.event_id.hex(),
        kind="turn" if isinstance(event, Turn) else "memory",
        text=said.text,
        score=score,
        at=from_micros(event.at),
        source="log:turn" if isinstance(event, Turn) else "log:memory",
        seq=said.seq,
        turn_id=event.turn_id if isinstance(event, Turn) else None,
        session=scope.session,
        role=said.role,
        key=event.key if isinstance(event, MemoryWrite) else None,
        labels={name: value for name, value in labels.items() if value},
        why=why,
    )


def _tokenizer() -> Tokenize:
    """This thread's tokenizer."""
    mine: Tokenize | None = getattr(_own, "tokenize", None)
    if mine is None:
        mine = _own.tokenize = tokenizer()
    return mine
