"""The ranking: which utterances answer a query best.  Pure: postings and lines in, scores out.

A term counts by how rare it is in the scope and how short the text is.  An utterance also earns, less, from its neighbours in the same
thread: an answer often stands next to the words that were asked for.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

import attrs

from memoryd.core import Value
from memoryd.recall._terms import Asked, Dates
from memoryd.recall._text import QUESTION, QUOTED, SPOKEN, TIMED

__all__ = ["ANCHORS", "Line", "Scored", "Weights", "anchors", "idf", "rank"]

ANCHORS = 60  # utterances whose neighbourhood is scored
_LEAST = 1e-4  # share of the best term's worth below which a term changes nothing
_LONG = 100  # tokens above which a text earns no more by its size

Line: TypeAlias = tuple[int, int | None, int, int, int, int]
"""What ranking knows of an utterance: id, thread (None: it has no neighbours), place in the thread, tokens, flags, time (microseconds).
A plain tuple, because a query makes hundreds."""


class Scored(NamedTuple):
    """An utterance with its score and the parts of it: ``terms``, and the factors that are not 1."""

    score: float
    id: int
    why: dict[str, float]


@attrs.frozen(slots=True, eq=False, repr=False)
class Weights(Value):
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


def anchors(postings: Sequence[Set[int]], worth: Sequence[float], count: int = ANCHORS) -> list[int]:
    """The ``count`` ids with the largest sum of the worth of the terms they have; ties go to the larger (newer) id.

    Rare terms go first: once ``count`` ids have more than all remaining terms together can give, new ids are out of the race.
    """
    remaining = math.fsum(worth)
    sums: dict[int, float] = {}
    for value, ids in sorted(zip(worth, postings, strict=True), key=lambda term: -term[0]):
        known = sums.keys() & ids
        for id in known:
            sums[id] += value
        if len(sums) < count or _kth(sums, count) <= remaining:
            sums.update(dict.fromkeys(ids - known, value))
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
    lines: Sequence[Line], postings: Sequence[Set[int]], worth: Sequence[float], asked: Asked, average: float,
    weights: Weights = WEIGHTS,
) -> Iterator[Scored]:
    """``lines`` (the anchors and their neighbours) with their scores, best first; ties: newest first.

    ``postings`` (the ids that have a term) and ``worth`` are by term; ``average`` is the mean number of tokens in the scope.
    """
    sums = _term_sums(lines, postings, worth, max(average, 1.0), weights)
    factors = _Factors(asked.dates, weights)
    scores = [
        total * factors.product(line[4], line[5]) * (min(line[3], _LONG) + 3) ** weights.size
        for total, line in zip(sums, lines, strict=True)
    ]
    bonus = _thread_bonus(lines, scores, weights.thread)
    must_have = _must_have(lines, postings, asked)
    order = sorted(
        ((score + bonus.get(line[1], 0.0), line[0], number) for number, (score, line) in enumerate(zip(scores, lines, strict=True)))
        , reverse=True,
    )
    for score, id, number in order:
        if scores[number] > 0 and (must_have is None or id in must_have):
            yield Scored(score, id, {"terms": sums[number], **factors.named(lines[number][4], lines[number][5])})


def _must_have(lines: Sequence[Line], postings: Sequence[Set[int]], asked: Asked) -> set[int] | None:
    """Who asks with a quotation alone, or with one word, wants what has it, and nothing from beside it; None: anything goes."""
    if asked.only_phrases:
        return {line[0] for line in lines if line[4] & QUOTED}
    return set().union(*postings) if asked.one_word else None


def _term_sums(
    lines: Sequence[Line], postings: Sequence[Set[int]], worth: Sequence[float], average: float, weights: Weights
) -> list[float]:
    """For each line the sum over terms of the root of the energy that the term has in it and around it."""
    index = {line[0]: number for number, line in enumerate(lines)}
    spread = _Spread(lines, weights)
    k, flat, slope = weights.saturation, 1 - weights.length, weights.length / average
    sums = [0.0] * len(lines)
    least = _LEAST * max((value for ids, value in zip(postings, worth, strict=True) if ids), default=0.0)
    for ids, value in zip(postings, worth, strict=True):
        if value < least:
            continue
        energy: dict[int, float] = defaultdict(float)
        for id in index.keys() & ids:
            number = index[id]
            own = (value * (k + 1) / (1 + k * (flat + slope * lines[number][3]))) ** 2
            energy[number] += own
            for other, share in spread[number]:
                energy[other] += own * share
        for number, total in energy.items():
            sums[number] += math.sqrt(total)
    return sums


class _Spread(dict[int, list[tuple[int, float]]]):
    """Where the energy of a line goes besides itself: to its neighbours in the thread.  Worked out once a line, when needed."""

    def __init__(self, lines: Sequence[Line], weights: Weights) -> None:
        one, two = (share * share for share in weights.near)
        self._steps = {False: ((-2, two), (-1, one), (1, one), (2, two))}
        self._steps[True] = ((-2, two), (-1, one), (1, one * weights.answer**2), (2, two))
        self._lines = lines
        self._at = {(line[1], line[2]): number for number, line in enumerate(lines)}  # a thread of None is never asked for

    def __missing__(self, number: int) -> list[tuple[int, float]]:
        _, thread, place, _, flags, _ = self._lines[number]
        at = self._at
        steps = self._steps[flags & QUESTION != 0] if thread is not None else ()
        found = self[number] = [(at[thread, place + step], share) for step, share in steps if (thread, place + step) in at]
        return found


class _Factors:
    """What a score is multiplied by, for what the flags and the time of a line say."""

    def __init__(self, dates: Dates, weights: Weights) -> None:
        self._dates = dates
        self._named = {
            SPOKEN: ("speaker", weights.speaker), TIMED: ("time", weights.timed), QUOTED: ("quoted", weights.quoted),
            QUESTION: ("question", weights.question),
        }
        self._products: dict[int, float] = {}

    def product(self, flags: int, at: int) -> float:
        if self._dates:
            return math.prod(self.named(flags, at).values())
        known = self._products.get(flags)
        if known is None:
            known = self._products[flags] = math.prod(self.named(flags, at).values())
        return known

    def named(self, flags: int, at: int) -> dict[str, float]:
        """The factors by name; one of 1 is left out."""
        named = dict(entry for flag, entry in self._named.items() if flags & flag)
        if self._dates and (count := _date_match(at, self._dates)):
            named["date"] = 1.0 + count
        return named


def _date_match(at: int, dates: Dates) -> int:
    """How many of year, month and day that the query names are those of ``at`` (microseconds)."""
    day = datetime.fromtimestamp(min(at // 1_000_000, 253402300799), UTC)
    return (day.year in dates.years) + (day.month in dates.months) + (day.day in dates.days)


def _thread_bonus(lines: Sequence[Line], scores: Sequence[float], share: float) -> Mapping[int | None, float]:
    """For each thread ``share`` of the mean of its best two scores."""
    by_thread: dict[int | None, list[float]] = defaultdict(list)
    for line, score in zip(lines, scores, strict=True):
        by_thread[line[1]].append(score)
    return {thread: share * sum(sorted(found)[-2:]) / 2 for thread, found in by_thread.items() if thread is not None}
