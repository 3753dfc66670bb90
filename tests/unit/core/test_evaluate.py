"""Points, grades, recommendations and texts: each threshold, from both sides."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from memoryd.core import Evaluation, Points, grade_of, latency_points, overall, report_of, verdict_of

LOCAL = Evaluation(
    name="local", backend_name="local (SQLite)", store_latency_ms=1.0, retrieve_latency_ms=0.5, query_latency_ms=1.5,
    store_success=True, retrieve_success=True, query_result_count=5, data_location="/home/ada/memory.db",
)  # fmt: skip
CLOUD = attrs.evolve(LOCAL, name="honcho", backend_name="honcho (cloud)", is_cloud=True, requires_api_key=True)
NULL = Evaluation(name="null", backend_name="null (disabled)", baseline=True, store_latency_ms=0.1, retrieve_latency_ms=0.1, query_latency_ms=0.1)
GONE = Evaluation(name="gone", backend_name="gone", available=False, notes=("Backend not available",))

STAY = "local matches or beats cloud: stay local for sovereignty"
GO = "cloud outperforms local but adds cloud dependency"
KEYS = {
    "backend_name", "name", "is_cloud", "cloud", "available", "store_latency_ms", "retrieve_latency_ms", "query_latency_ms",
    "store_success", "retrieve_success", "query_returns_results", "query_result_count", "data_location", "requires_api_key",
    "score", "grade", "recommendation", "notes",
}  # fmt: skip


@pytest.mark.parametrize(
    ("score", "grade"),
    [(100, "A"), (80, "A"), (79, "B"), (60, "B"), (59, "C"), (40, "C"), (39, "D"), (20, "D"), (19, "F"), (0, "F")],
)
def test_a_grade(score: int, grade: str) -> None:
    assert grade_of(score) == grade


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        (100, "RECOMMENDED"), (80, "RECOMMENDED"), (79, "ACCEPTABLE"), (60, "ACCEPTABLE"), (59, "MARGINAL"), (40, "MARGINAL"),
        (39, "NOT RECOMMENDED"), (0, "NOT RECOMMENDED"),
    ],
)  # fmt: skip
def test_a_verdict(score: int, verdict: str) -> None:
    assert verdict_of(score) == verdict


@pytest.mark.parametrize(
    ("ms", "points"), [(0.0, 20), (9.999, 20), (10.0, 15), (49.999, 15), (50.0, 10), (199.999, 10), (200.0, 5), (1e9, 5), (None, 0)]
)
def test_the_points_of_a_latency(ms: float | None, points: int) -> None:
    assert latency_points(ms) == points


def test_the_latency_is_the_mean_of_what_answered() -> None:
    assert LOCAL.latency_ms == pytest.approx(1.0)
    assert attrs.evolve(LOCAL, store_latency_ms=100.0, retrieve_latency_ms=None, query_latency_ms=20.0).latency_ms == 60.0
    assert GONE.latency_ms is None


def test_the_parts_of_a_score() -> None:
    assert LOCAL.points == Points(availability=20, store=15, retrieve=15, query=10, latency=20, privacy=20)
    assert CLOUD.points == Points(availability=20, store=15, retrieve=15, query=10, latency=20, privacy=5)
    assert GONE.points == Points()
    assert (LOCAL.score, LOCAL.grade, LOCAL.recommendation) == (100, "A", "RECOMMENDED")
    assert (CLOUD.score, CLOUD.grade, CLOUD.recommendation) == (85, "A", "RECOMMENDED")
    assert (GONE.score, GONE.grade, GONE.recommendation) == (0, "F", "NOT AVAILABLE")


@pytest.mark.parametrize(
    ("change", "lost"),
    [({"store_success": False}, 15), ({"retrieve_success": False}, 15), ({"query_result_count": 0}, 10), ({"query_latency_ms": 600.0}, 15)],
)
def test_what_fails_costs_its_points(change: dict[str, Any], lost: int) -> None:
    assert attrs.evolve(LOCAL, **change).score == 100 - lost


def test_null_is_a_baseline_and_never_recommended() -> None:
    assert (NULL.score, NULL.recommendation) == (60, "NOT RECOMMENDED")
    assert overall([NULL]) == "no viable backend"


def test_the_overall_text() -> None:
    assert overall([]) == "no viable backend"
    assert overall([NULL, GONE]) == "no viable backend"
    assert overall([NULL, LOCAL]) == "best backend: local (SQLite), score 100"
    assert overall([CLOUD]) == "best backend: honcho (cloud), score 85; privacy warning: honcho (cloud) keeps memory off this machine"
    assert overall([CLOUD, LOCAL]) == f"best backend: local (SQLite), score 100; {STAY}"


def test_a_tie_stays_local() -> None:
    slow = attrs.evolve(LOCAL, store_latency_ms=900.0)
    assert slow.score == CLOUD.score
    assert overall([CLOUD, slow]) == f"best backend: local (SQLite), score 85; {STAY}"


def test_a_better_cloud_is_named_with_its_price() -> None:
    broken = attrs.evolve(LOCAL, store_success=False, retrieve_success=False)
    assert overall([broken, CLOUD]) == (
        f"best backend: honcho (cloud), score 85; privacy warning: honcho (cloud) keeps memory off this machine; {GO}"
    )


def test_the_keys_of_a_report() -> None:
    report = report_of([LOCAL, CLOUD], "2026-01-31T12:00:00+00:00", {"local": {"cost": {"calls": 3}}})
    assert set(report) == {"timestamp", "backends_evaluated", "evaluations", "results", "recommendation", "beside"}
    assert report["backends_evaluated"] == 2
    assert report["results"] == report["evaluations"]
    assert [set(one) for one in report["evaluations"]] == [KEYS, KEYS]
    assert report["beside"] == {"local": {"cost": {"calls": 3}}}


def test_what_stands_beside_changes_no_score() -> None:
    bare, full = (report_of([LOCAL], "", beside) for beside in ({}, {"local": {"relevance": {"recall@10": 0.0}}}))
    assert bare["evaluations"] == full["evaluations"]


def test_the_evaluation_as_json() -> None:
    found = CLOUD.as_json()
    assert (found["backend_name"], found["name"], found["is_cloud"], found["cloud"]) == ("honcho (cloud)", "honcho", True, True)
    assert (found["query_returns_results"], found["query_result_count"], found["notes"]) == (True, 5, [])
    assert GONE.as_json()["store_latency_ms"] is None
