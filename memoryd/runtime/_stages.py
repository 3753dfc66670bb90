"""How long each stage takes: its latest calls in a ring of fixed size, at next to no cost."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, TypeAlias, get_args

from memoryd.core import StageStatus

__all__ = ["STAGES", "Stage", "StageName", "make_stages"]

StageName: TypeAlias = Literal["append", "barrier", "project", "deliver", "recall", "prefetch", "checkpoint"]
STAGES: tuple[StageName, ...] = get_args(StageName)

_KEPT = 512  # calls; a power of two


class Stage:
    """Any thread may add.  Two threads in the same instant may count as one call: no percentile notices."""

    __slots__ = ("_latest", "calls", "name", "total_ns")

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.total_ns = 0
        self._latest = array("q", bytes(8 * _KEPT))

    def add(self, ns: int) -> None:
        """Count one call that took ``ns`` nanoseconds."""
        calls = self.calls
        self._latest[calls & (_KEPT - 1)] = ns
        self.calls = calls + 1
        self.total_ns += ns

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the block, however it ends; for what takes a millisecond, not for the append."""
        started = time.perf_counter_ns()
        try:
            yield
        finally:
            self.add(time.perf_counter_ns() - started)

    def status(self) -> StageStatus:
        latest = sorted(self._latest[: self.calls])
        p50, p95 = (latest[int(share * (len(latest) - 1))] / 1e6 if latest else 0.0 for share in (0.5, 0.95))
        return StageStatus(self.name, self.calls, round(p50, 6), round(p95, 6), round(self.total_ns / 1e6, 6))


def make_stages() -> Mapping[StageName, Stage]:
    """One of each, empty."""
    return {name: Stage(name) for name in STAGES}
