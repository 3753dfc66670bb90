"""Measures one backend for the 100 points.  Whatever goes wrong is a note; the measuring goes on."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import attrs
import trio

from memoryd.core import NOT_AVAILABLE, Evaluation, Memory
from memoryd.errors import MemorydError
from memoryd.evaluate._trial import CALL_SECONDS, USER, Stage, Trial, Unapplied
from memoryd.store import profile_directory

__all__ = ["Noted", "measure"]

T = TypeVar("T")
_ROUNDS = 5
_PATIENCE = 5.0  # seconds until a reader sees what was written: a remote index may lag behind
_PAUSE = 0.1
_BASELINE = "Baseline: keeps nothing"


@attrs.define(slots=True)
class Noted:
    """Notes of one evaluation."""

    lines: list[str] = attrs.field(factory=list)

    @contextmanager
    def during(self, step: str) -> Iterator[None]:
        """An exception of the block becomes a note."""
        try:
            yield
        except (MemorydError, Unapplied) as error:
            self.lines.append(f"{step}: {type(error).__name__}: {error}")
        except trio.TooSlowError:
            self.lines.append(f"{step}: no answer in time")
        except Exception as error:  # noqa: BLE001 - a stranger's code, and its message may hold anything
            self.lines.append(f"{step}: {type(error).__name__}")


async def measure(stage: Stage, name: str, profile: str, notes: Noted) -> tuple[Evaluation, dict[str, Any]]:
    """The evaluation of the backend ``name``, and its cost.  ``profile`` is the one whose place the report names."""
    with notes.during("build"):
        trial = Trial(stage, name)
        available = trial.backend.is_available()
        if available:
            return await _Bench(trial, notes).run(_blank(stage, name, trial, profile))
        notes.lines += [NOT_AVAILABLE, *filter(None, [available.reason])]
        return attrs.evolve(_blank(stage, name, trial, profile), available=False), {}
    notes.lines.insert(0, NOT_AVAILABLE)
    return Evaluation(name=name, backend_name=name, available=False), {}


def _blank(stage: Stage, name: str, trial: Trial, profile: str) -> Evaluation:
    """What the backend says of itself; its place is where it would be in the user's home."""
    info = trial.backend.info
    place = info.data_location.replace(str(trial.directory), str(profile_directory(stage.home, profile)))
    return Evaluation(
        name=name,
        backend_name=info.label,
        is_cloud=info.is_cloud,
        baseline="memories" not in info.capabilities and "turns" not in info.capabilities,
        data_location=place,
        requires_api_key=info.requires_api_key,
    )


class _Bench:
    """Stores, reads and queries some memories, each several times."""

    def __init__(self, trial: Trial, notes: Noted) -> None:
        self._trial = trial
        self._notes = notes
        self._patience = 0.0
        self._values = {f"evaluation-{n}": f"evaluated value {n}" for n in range(_ROUNDS)}

    async def run(self, blank: Evaluation) -> tuple[Evaluation, dict[str, Any]]:
        found: dict[str, Any] = {}
        with self._notes.during("open or erase"):
            async with self._trial.opened():
                for step in (self._store, self._retrieve, self._query):
                    with self._notes.during(step.__name__.strip("_")):
                        found |= await step()
        if blank.baseline:
            self._notes.lines.append(_BASELINE)
            found["store_success"] = False
        return attrs.evolve(blank, **found), self._cost()

    def _cost(self) -> dict[str, Any]:
        """Calls of the port, bytes of the events given, bytes of files kept on this machine."""
        files = [path for path in self._trial.directory.glob("memory*") if path.is_file()]
        return {
            "calls": self._trial.calls,
            "bytes_given": self._trial.bytes,
            "bytes_kept_here": sum(path.stat().st_size for path in files),
        }

    async def _store(self) -> dict[str, Any]:
        """Timed on ``apply``, one event a call."""
        writes = [self._trial.write(key, value) for key, value in self._values.items()]
        spent = [(await _timed(partial(self._trial.tell, write)))[0] for write in writes]
        self._patience = _PATIENCE if self._trial.backend.info.is_cloud else 0.0
        return {"store_latency_ms": _mean(spent), "store_success": True}

    async def _retrieve(self) -> dict[str, Any]:
        spent, right = [], True
        for key, value in self._values.items():
            ms, memory = await self._seen(partial(self._trial.backend.retrieve, USER, key), partial(_holds, value))
            spent.append(ms)
            right = right and _holds(value, memory)
        return {"retrieve_latency_ms": _mean(spent), "retrieve_success": right}

    async def _query(self) -> dict[str, Any]:
        spent, count = [], 0
        for _ in range(_ROUNDS):
            ask = partial(self._trial.backend.query, USER, "EVALUATED value", 10)
            ms, memories = await self._seen(ask, lambda found: len(found) == len(self._values))
            spent.append(ms)
            count = len(memories)
        return {"query_latency_ms": _mean(spent), "query_result_count": count}

    async def _seen(self, read: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> tuple[float, T]:
        """Read again until it answers what is wanted or patience, one for all readings, ends; the latency is that of the last one."""
        while True:
            self._trial.calls += 1
            ms, found = await _timed(read)
            if wanted(found) or self._patience <= 0:
                return ms, found
            self._patience -= _PAUSE
            await trio.sleep(_PAUSE)


def _holds(value: str, memory: Memory | None) -> bool:
    return memory is not None and memory.value == value


async def _timed(call: Callable[[], Awaitable[T]]) -> tuple[float, T]:
    """How many milliseconds the call took, and its result."""
    started = time.perf_counter()
    with trio.fail_after(CALL_SECONDS):
        result = await call()
    return (time.perf_counter() - started) * 1000, result


def _mean(spent: list[float]) -> float:
    return round(sum(spent) / len(spent), 3)
