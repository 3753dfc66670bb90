"""What a backend is worth: points from what was measured, grades and texts from points.  The measuring is ``memoryd.evaluate``'s."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import attrs

from memoryd.core._value import Value

__all__ = [
    "NOT_AVAILABLE", "Evaluation", "Points", "Verdict", "grade_of", "latency_points", "overall", "report_of", "verdict_of",
]

Verdict = Literal["RECOMMENDED", "ACCEPTABLE", "MARGINAL", "NOT RECOMMENDED", "NOT AVAILABLE"]
NOT_AVAILABLE = "Backend not available"
_GRADES = ((80, "A"), (60, "B"), (40, "C"), (20, "D"))
_VERDICTS: tuple[tuple[int, Verdict], ...] = ((80, "RECOMMENDED"), (60, "ACCEPTABLE"), (40, "MARGINAL"))
_LATENCY = ((10.0, 20), (50.0, 15), (200.0, 10))  # below so many milliseconds: points


def grade_of(score: int) -> str:
    """``A`` from 80 points, ``B`` from 60, ``C`` from 40, ``D`` from 20, else ``F``."""
    return next((grade for least, grade in _GRADES if score >= least), "F")


def verdict_of(score: int) -> Verdict:
    """``RECOMMENDED`` from 80 points, ``ACCEPTABLE`` from 60, ``MARGINAL`` from 40, else ``NOT RECOMMENDED``."""
    return next((verdict for least, verdict in _VERDICTS if score >= least), "NOT RECOMMENDED")


def latency_points(mean_ms: float | None) -> int:
    """20 below 10 ms, 15 below 50, 10 below 200, else 5; 0 where nothing answered."""
    if mean_ms is None:
        return 0
    return next((points for below, points in _LATENCY if mean_ms < below), 5)


@attrs.frozen(slots=True, eq=False, repr=False)
class Points(Value):
    """The parts of a score, 100 together at most."""

    availability: int = 0
    store: int = 0
    retrieve: int = 0
    query: int = 0
    latency: int = 0
    privacy: int = 0

    @property
    def total(self) -> int:
        return self.availability + self.store + self.retrieve + self.query + self.latency + self.privacy


@attrs.frozen(slots=True, eq=False, repr=False, kw_only=True)
class Evaluation(Value):
    """What was measured at one backend.  A latency is milliseconds, None where the operation never answered.

    ``baseline``: the backend keeps nothing, so that it shows what nothing costs and is never recommended.
    """

    name: str
    backend_name: str
    is_cloud: bool = False
    available: bool = True
    baseline: bool = False
    store_latency_ms: float | None = None
    retrieve_latency_ms: float | None = None
    query_latency_ms: float | None = None
    store_success: bool = False
    retrieve_success: bool = False
    query_result_count: int = 0
    data_location: str = ""
    requires_api_key: bool = False
    notes: tuple[str, ...] = ()

    @property
    def query_returns_results(self) -> bool:
        return self.query_result_count > 0

    @property
    def latency_ms(self) -> float | None:
        """The mean of the operations that answered."""
        measured = [ms for ms in (self.store_latency_ms, self.retrieve_latency_ms, self.query_latency_ms) if ms is not None]
        return sum(measured) / len(measured) if measured else None

    @property
    def points(self) -> Points:
        if not self.available:
            return Points()
        return Points(
            availability=20,
            store=15 * self.store_success,
            retrieve=15 * self.retrieve_success,
            query=10 * self.query_returns_results,
            latency=latency_points(self.latency_ms),
            privacy=5 if self.is_cloud else 20,
        )

    @property
    def score(self) -> int:
        return self.points.total

    @property
    def grade(self) -> str:
        return grade_of(self.score)

    @property
    def recommendation(self) -> Verdict:
        if not self.available:
            return "NOT AVAILABLE"
        return "NOT RECOMMENDED" if self.baseline else verdict_of(self.score)

    @property
    def is_viable(self) -> bool:
        """Whether it may be named as the best."""
        return self.available and not self.baseline

    def as_json(self) -> dict[str, Any]:
        """The evaluation as it stands in a report."""
        return {
            "backend_name": self.backend_name,
            "name": self.name,
            "is_cloud": self.is_cloud,
            "cloud": self.is_cloud,
            "available": self.available,
            "store_latency_ms": self.store_latency_ms,
            "retrieve_latency_ms": self.retrieve_latency_ms,
            "query_latency_ms": self.query_latency_ms,
            "store_success": self.store_success,
            "retrieve_success": self.retrieve_success,
            "query_returns_results": self.query_returns_results,
            "query_result_count": self.query_result_count,
            "data_location": self.data_location,
            "requires_api_key": self.requires_api_key,
            "score": self.score,
            "grade": self.grade,
            "recommendation": self.recommendation,
            "notes": list(self.notes),
        }


def overall(evaluations: Iterable[Evaluation]) -> str:
    """The report's recommendation, one line: the best backend, and what it means to keep memory in a cloud."""
    viable = sorted((one for one in evaluations if one.is_viable), key=lambda one: (-one.score, one.is_cloud, one.name))
    if not viable:
        return "no viable backend"
    best = viable[0]
    parts = [f"best backend: {best.backend_name}, score {best.score}"]
    if best.is_cloud:
        parts.append(f"privacy warning: {best.backend_name} keeps memory off this machine")
    local = max((one.score for one in viable if not one.is_cloud), default=None)
    cloud = max((one.score for one in viable if one.is_cloud), default=None)
    if local is not None and cloud is not None:
        stay = "local matches or beats cloud: stay local for sovereignty"
        parts.append(stay if local >= cloud else "cloud outperforms local but adds cloud dependency")
    return "; ".join(parts)


def report_of(evaluations: Sequence[Evaluation], timestamp: str, beside: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The report as JSON values.  ``beside`` holds, by name, what is no part of the 100 points: relevance, reliability, cost."""
    found = [one.as_json() for one in evaluations]
    return {
        "timestamp": timestamp,
        "backends_evaluated": len(found),
        "evaluations": found,
        "results": found,
        "recommendation": overall(evaluations),
        "beside": {name: dict(values) for name, values in beside.items()},
    }
