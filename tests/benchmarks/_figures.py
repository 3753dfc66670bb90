"""What the benchmarks share: a figure with its bar, measuring in turn, a corpus, the table."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["figure", "interleave", "median", "print_table", "texts", "verdict_of"]


def verdict_of(got: float, bar: float, stretch: float | None, *, higher: bool = False) -> str:
    """``stretch``, ``bar`` or ``MISS``."""

    def reached(limit: float | None) -> bool:
        return limit is not None and (got >= limit if higher else got <= limit)

    return "stretch" if reached(stretch) else "bar" if reached(bar) else "MISS"


def figure(
    name: str, bar: float, stretch: float | None, got: float, unit: str, detail: str = "", *, higher: bool = False
) -> dict[str, Any]:
    """One line of the table.  ``unit`` is ``x`` for ratios; ``higher`` where more is better."""
    return {
        "name": name,
        "bar": bar,
        "stretch": stretch,
        "got": round(got, 3),
        "unit": unit,
        "verdict": verdict_of(got, bar, stretch, higher=higher),
        "detail": detail,
        "direction": ">=" if higher else "<=",
    }


def median(values: list[float]) -> float:
    return statistics.median(values)


def interleave(rounds: int, **steps: Callable[[], object]) -> dict[str, list[float]]:
    """Seconds of each step, the steps taken in turn, so that all of them meet the same neighbours."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            times[name].append(time.perf_counter() - start)
    return times


def texts(count: int, seed: int = 1, *, words: int = 50_000, low: int = 40, high: int = 120) -> Iterator[str]:
    """Synthetic messages: Zipf-like words of a vocabulary, the same for the same seed."""
    chooser = random.Random(seed)
    for _ in range(count):
        length = chooser.randint(low, high)
        yield " ".join(f"w{int(words ** chooser.random()):x}" for _ in range(length))


def print_table(figures: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="memoryd: figures of this run")
    for column in ("what", "bar", "stretch", "got", "verdict", "how"):
        table.add_column(column, justify="left" if column in ("what", "verdict", "how") else "right")
    for line in figures:
        sign, unit = line.get("direction", "<="), line.get("unit", "x")
        stretch = "-" if line["stretch"] is None else f"{line['stretch']:g}{unit}"
        table.add_row(
            line["name"], f"{sign} {line['bar']:g}{unit}", stretch, f"{line['got']:g}{unit}", line["verdict"], line.get("detail", "")
        )
    Console().print(table)
