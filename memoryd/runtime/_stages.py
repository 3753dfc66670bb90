"""How long each stage takes: a histogram of fixed size for each, at next to no cost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, TypeAlias, get_args

from memoryd.core import StageStatus

__all__ = ["STAGES", "Stage", "StageName", "make_stages"]

StageName: TypeAlias = Literal["append", "barrier", "project", "deliver", "recall", "prefetch", "checkpoint"]
STAGES: tuple[StageName, ...] = get_args(StageName)

_FADE = 4096  # calls after which what was before counts half
_PLACES = 4 * 64 + 1  # four for each doubling of nanoseconds, for every number of 64 bits


class Stage:
    """Any thread may add.  Two threads in the same instant may count as one call: no percentile notices."""

    __slots__ = ("_counts", "calls", "name", "total_ns")

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.total_ns = 0
        self._counts = [0] * _PLACES

    def add(self, ns: int) -> None:
        """Count one call that took ``ns`` nanoseconds."""
        square = ns * ns
        self._counts[(square * square).bit_length()] += 1
        self.total_ns += ns
        self.calls = calls = self.calls + 1
        if not calls % _FADE:
            self._counts = [count >> 1 for count in self._counts]

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the block, however it ends; for what takes a millisecond, not for the append."""
        started = time.perf_counter_ns()
        try:
            yield
        finally:
            self.add(time.perf_counter_ns() - started)

    def percentile(self, share: float) -> float:
        """The milliseconds that ``share`` of the latest calls stayed below, within 10 %; 0 where there was none."""
        counts = self._counts
        wanted = share * sum(counts)
        for place, count in enumerate(counts):
            wanted -= count
            if count and wanted <= 0:
                return round(2 ** ((place - 0.5) / 4) / 1e6, 6)
        return 0.0

    def status(self) -> StageStatus:
        return StageStatus(self.name, self.calls, self.percentile(0.5), self.percentile(0.95), round(self.total_ns / 1e6, 3))


def make_stages() -> Mapping[StageName, Stage]:
    """One of each, empty."""
    return {name: Stage(name) for name in STAGES}
