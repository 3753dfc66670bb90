"""The ranking, on numbers alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.recall import (
    QUOTED,
    SPOKEN,
    Asked,
    Line,
    Scored,
    Term,
    analyse,
    anchors,
    idf,
    language_named,
    rank,
    tokenizer,
)

WORTH = [3.0, 1.0]
TWO = Asked(terms=(Term("a", ("a",), frozenset("a")), Term("b", ("b",), frozenset("b"))))


def line(id: int, *, thread: int | None = 1, tokens: int = 10, flags: int = 0, at: int = 0) -> Line:
    return id, thread, id, tokens, flags, at


def ranked(lines: list[Line], postings: list[set[int]], asked: Asked = TWO) -> list[Scored]:
    return list(rank(lines, postings, WORTH, asked, 10.0))


def order(lines: list[Line], postings: list[set[int]], asked: Asked = TWO) -> list[int]:
    return [scored.id for scored in ranked(lines, postings, asked)]


@given(st.integers(1, 10**9), st.integers(0, 10**9))
def test_idf_is_positive_and_falls(total: int, found: int) -> None:
    found = min(found, total)
    assert idf(total, found) > 0
    assert idf(total, found) >= idf(total, min(found + 1, total))


@given(
    st.lists(st.tuples(st.sets(st.integers(1, 60), max_size=40), st.floats(1e-6, 10)), min_size=1, max_size=6), st.integers(1, 20)
)
def test_anchors_are_exactly_the_largest_sums(terms: list[tuple[set[int], float]], count: int) -> None:
    postings, worth = [ids for ids, _ in terms], [value for _, value in terms]
    sums = {id: math.fsum(value for ids, value in terms if id in ids) for ids in postings for id in ids}
    best = anchors(postings, worth, count)
    assert len(best) == len(set(best)) == min(count, len(sums))
    least = sorted(sums.values(), reverse=True)[: len(best)]
    assert sorted((sums[id] for id in best), reverse=True) == pytest.approx(least)


def test_equal_anchors_the_newest() -> None:
    assert sorted(anchors([set(range(1, 11))], [1.0], 3)) == [8, 9, 10]


def test_more_and_rarer_terms_win() -> None:
    lines = [line(1, thread=1), line(2, thread=2), line(3, thread=3)]
    assert order(lines, [{1, 2}, {2, 3}]) == [2, 1, 3]


def test_shorter_texts_win_and_equal_ones_newest_first() -> None:
    assert order([line(1, thread=1, tokens=5), line(2, thread=2, tokens=80)], [{1, 2}, set()])[0] == 1
    assert order([line(1, thread=1), line(2, thread=2)], [{1, 2}, set()]) == [2, 1]


def test_a_very_long_neighbour_does_not_come_before_what_matches() -> None:
    assert order([line(1), line(2, tokens=50_000)], [{1}, set()]) == [1, 2]


def test_neighbours_earn_by_distance_within_their_thread() -> None:
    lines = [line(1), line(2), line(3), line(4, thread=9), line(5, thread=None)]
    scores = {scored.id: scored.score for scored in ranked(lines, [{3}, set()])}
    assert scores[3] > scores[2] > scores[1] > 0
    assert 4 not in scores
    assert 5 not in scores


def test_a_question_gives_more_to_what_follows() -> None:
    plain = {scored.id: scored.score for scored in ranked([line(1), line(2)], [{1}, set()])}
    question = {scored.id: scored.score for scored in ranked([line(1, flags=1), line(2)], [{1}, set()])}
    assert question[2] > plain[2]
    assert question[1] < plain[1]


def test_flags_and_dates_are_factors_and_named() -> None:
    asked = analyse("what happened on 7 May 2023", language_named("en"), tokenizer())
    at = 1_683_417_600_000_000
    found = ranked([line(1, thread=1), line(2, thread=2, flags=SPOKEN, at=at), line(3, thread=3, flags=QUOTED)], [{1, 2, 3}, set()], asked)
    assert [scored.id for scored in found] == [2, 3, 1]
    assert found[0].why.keys() == {"terms", "speaker", "date"}
    assert found[0].why["date"] == 4.0
    assert found[1].why.keys() == {"terms", "quoted"}


def test_one_word_and_quotations_alone_leave_neighbours_out() -> None:
    lines = [line(1), line(2, flags=QUOTED), line(3)]
    assert order(lines, [{1}, set()], Asked(terms=TWO.terms, one_word=True)) == [1]
    assert order(lines, [{1, 2}, set()], Asked(terms=TWO.terms, only_phrases=True)) == [2]


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 3), st.integers(0, 500)), unique_by=lambda one: one[0], max_size=40))
def test_every_score_is_finite_and_in_order(given_lines: list[tuple[int, int, int]]) -> None:
    lines = [line(id, thread=thread, tokens=tokens) for id, thread, tokens in given_lines]
    found = ranked(lines, [{id for id, _, _ in given_lines if id % 2}, {id for id, _, _ in given_lines if id % 3}])
    scores = [scored.score for scored in found]
    assert scores == sorted(scores, reverse=True)
    assert all(math.isfinite(score) and score > 0 for score in scores)
