"""The ranking: which utterances answer a query best.  Pure: postings and lines in, scores out.

A term counts by how rare it is in the scope and how short the text is.  An utterance also earns, less, from its neighbours in the same
thread: an answer often stands next to the words that were asked for.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import attrs

from memoryd.recall._terms import Asked, Dates
from memoryd.recall._text import QUESTION, QUOTED, TIMED

__all__ = ["ANCHORS", "Line", "Scored", "Weights", "anchors", "idf", "rank"]

ANCHORS = 100  # utterances whose neighbourhood is scored
_LONG = 100  # tokens above which a text earns no more by its size


class Line(NamedTuple):
    """What ranking knows of an utterance.  ``thread`` is None for what has no neighbours; ``actor`` is who said it."""

    id: int
    thread: int | None
    place: int
    tokens: int
    flags: int
    actor: str
    at: int


class Scored(NamedTuple):
    """An utterance with its score and the parts of it: ``terms``, and the factors that were not 1."""

    score: float
    line: Line
    why: dict[str, float]


@attrs.frozen(slots=True)
class Weights:
    """The figures of the ranking.  ``near`` are the shares that a word one and two utterances away gives; a question gives ``answer``
    times that to what follows it.  ``thread`` is the share of a thread's best that all of it earns; the rest are factors."""

    saturation: float = 1.2
    length: float = 0.3
    near: tuple[float, float] = (0.6, 0.4)
    answer: float = 1.3
    speaker: float = 1.6
    timed: float = 1.5
    quoted: float = 2.0
    question: float = 0.8
    size: float = 0.15
    thread: float = 0.3


WEIGHTS = Weights()


def idf(total: int, found: int) -> float:
    """How much a term tells that is in ``found`` of ``total`` utterances of the scope; never zero."""
    return max(math.log((total - found + 0.5) / (found + 0.5)), 1e-6) if found < total else 1e-6


def anchors(postings: Sequence[Sequence[int]], worth: Sequence[float], count: int = ANCHORS) -> list[int]:
    """The ``count`` ids with the largest sum of the worth of the terms they have; ties go to the larger (newer) id.

    Rare terms go first: once ``count`` ids have more than all remaining terms together can give, new ids are out of the race.
    """
    order = sorted(range(len(postings)), key=lambda term: -worth[term])
    remaining = math.fsum(worth)
    sums: dict[int, float] = {}
    for term in order:
        value = worth[term]
        ids: Iterable[int] = postings[term]
        if len(sums) >= count and _kth(sums, count) > remaining:
            ids = sums.keys() & ids
        for id in ids:
            sums[id] = sums.get(id, 0.0) + value
        remaining -= value
    return _largest(sums, count)


def _kth(sums: dict[int, float], count: int) -> float:
    return sorted(sums.values(), reverse=True)[count - 1]


def _largest(sums: dict[int, float], count: int) -> list[int]:
    if len(sums) <= count:
        return list(sums)
    least = _kth(sums, count)
    above = [id for id, value in sums.items() if value > least]
    level = sorted((id for id, value in sums.items() if value == least), reverse=True)
    return above + level[: count - len(above)]


def rank(
    lines: Sequence[Line], postings: Sequence[Sequence[int]], worth: Sequence[float], asked: Asked, average: float,
    weights: Weights = WEIGHTS,
) -> list[Scored]:
    """``lines`` (the anchors and their neighbours) with their scores, best first; ties: newest first.

    ``postings`` and ``worth`` are by term; ``average`` is the mean number of tokens in the scope.
    """
    sums = _term_sums(lines, postings, worth, max(average, 1.0), weights)
    parts = [(total, _factors(line, asked, weights)) for total, line in zip(sums, lines, strict=True)]
    scores = [
        total * math.prod(factors.values()) * (min(line.tokens, _LONG) + 3) ** weights.size
        for (total, factors), line in zip(parts, lines, strict=True)
    ]
    bonus = _thread_bonus(lines, scores, weights.thread)
    found = [
        Scored(score + bonus.get(line.thread, 0.0), line, {"terms": total, **factors})
        for line, score, (total, factors) in zip(lines, scores, parts, strict=True) if score > 0
    ]
    answers = _must_have(found, postings, asked)
    return sorted(answers, key=lambda scored: (-scored.score, -scored.line.id))


def _must_have(found: list[Scored], postings: Sequence[Sequence[int]], asked: Asked) -> list[Scored]:
    """Who asks with a quotation alone, or with one word, wants what has it, and nothing from beside it."""
    if asked.only_phrases:
        return [scored for scored in found if scored.line.flags & QUOTED]
    if asked.one_word:
        having = set().union(*postings)
        return [scored for scored in found if scored.line.id in having]
    return found


def _term_sums(
    lines: Sequence[Line], postings: Sequence[Sequence[int]], worth: Sequence[float], average: float, weights: Weights
) -> list[float]:
    """For each line the sum over terms of the root of the energy that the term has in it and around it."""
    index = {line.id: number for number, line in enumerate(lines)}
    spread = _Spread(lines, weights)
    k = weights.saturation
    weight = [(k + 1) / (1 + k * (1 - weights.length + weights.length * line.tokens / average)) for line in lines]
    sums = [0.0] * len(lines)
    for ids, value in zip(postings, worth, strict=True):
        energy: dict[int, float] = defaultdict(float)
        for id in index.keys() & ids:
            number = index[id]
            own = (value * weight[number]) ** 2
            for other, share in spread.of(number):
                energy[other] += own * share
        for number, total in energy.items():
            sums[number] += math.sqrt(total)
    return sums


class _Spread:
    """Where the energy of a line goes: to itself and to its neighbours in the thread.  Worked out once a line, when needed."""

    def __init__(self, lines: Sequence[Line], weights: Weights) -> None:
        self._lines = lines
        self._at = {(line.thread, line.place): number for number, line in enumerate(lines) if line.thread is not None}
        one, two = weights.near
        self._shares = ((-2, two * two), (-1, one * one), (1, one * one), (2, two * two))
        self._answer = (one * weights.answer) ** 2
        self._known: dict[int, list[tuple[int, float]]] = {}

    def of(self, number: int) -> list[tuple[int, float]]:
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = self._work_out(number)
        return known

    def _work_out(self, number: int) -> list[tuple[int, float]]:
        line = self._lines[number]
        found = [(number, 1.0)]
        if line.thread is not None:
            for step, share in self._shares:
                other = self._at.get((line.thread, line.place + step))
                if other is not None:
                    found.append((other, self._answer if step == 1 and line.flags & QUESTION else share))
        return found


def _factors(line: Line, asked: Asked, weights: Weights) -> dict[str, float]:
    """What the score is multiplied by, by name; a factor of 1 is left out."""
    factors: dict[str, float] = {}
    if line.actor in asked.who and len(asked.who) == 1:
        factors["speaker"] = weights.speaker
    if line.flags & TIMED:
        factors["time"] = weights.timed
    if line.flags & QUOTED:
        factors["quoted"] = weights.quoted
    if line.flags & QUESTION:
        factors["question"] = weights.question
    if asked.dates and (share := _date_match(line.at, asked.dates)):
        factors["date"] = 1 + share
    return factors


def _date_match(at: int, dates: Dates) -> float:
    """How many of year, month and day that the query names are those of ``at`` (microseconds)."""
    day = datetime.fromtimestamp(min(at // 1_000_000, 253402300799), UTC)
    return (day.year in dates.years) + (day.month in dates.months) + (day.day in dates.days)


def _thread_bonus(lines: Sequence[Line], scores: Sequence[float], share: float) -> dict[int | None, float]:
    """For each thread ``share`` of the mean of its best two scores."""
    by_thread: dict[int | None, list[float]] = defaultdict(list)
    for line, score in zip(lines, scores, strict=True):
        if line.thread is not None:
            by_thread[line.thread].append(score)
    return {thread: share * sum(sorted(found)[-2:]) / 2 for thread, found in by_thread.items()}
