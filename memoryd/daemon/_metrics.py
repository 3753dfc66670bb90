"""What Prometheus reads: one table of metrics, drawn into the documentation too.

No label holds more than the name of a profile, a backend, or something of memoryd's own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

import attrs

from memoryd import __version__
from memoryd.core import LogStatus, State, Status, Value
from memoryd.errors import ConfigError, MemorydError

if TYPE_CHECKING:
    from memoryd.runtime import Runtime

__all__ = ["METRICS", "Metric", "renderer"]

Point: TypeAlias = tuple[tuple[str, ...], float]
_QUANTILES = ("0.5", "0.95")


class Runtimes(Protocol):
    """Where the open profiles are."""

    def runtimes(self) -> Sequence[Runtime]: ...


@attrs.frozen(slots=True, eq=False, repr=False)
class Metric(Value):
    """``labels`` come after ``profile``, which every metric has; ``read`` gives their values with the number."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    read: Callable[[Status], Iterable[Point]] = attrs.field(repr=False)
    labels: tuple[str, ...] = ()


def _one(read: Callable[[Status], float]) -> Callable[[Status], Iterable[Point]]:
    return lambda status: [((), float(read(status)))]


def _log(read: Callable[[LogStatus], float]) -> Callable[[Status], Iterable[Point]]:
    return lambda status: [] if status.log is None else [((), float(read(status.log)))]


def _states(names: tuple[str, ...], state: State) -> Iterator[Point]:
    """One of the four is 1, the others are 0."""
    return (((*names, one), float(one == state)) for one in get_args(State))


def _each(part: str, read: Callable[[Any], float]) -> Callable[[Status], Iterable[Point]]:
    return lambda status: [((one.name,), float(read(one))) for one in getattr(status, part)]


def _queues(status: Status) -> Iterator[Point]:
    return (((name,), float(count)) for name, count in status.queues.items())


def _backend_states(status: Status) -> Iterator[Point]:
    return (point for backend in status.backends for point in _states((backend.name,), backend.state))


def _quantiles(status: Status) -> Iterator[Point]:
    for stage in status.stages:
        if stage.calls:
            for quantile, milliseconds in zip(_QUANTILES, (stage.p50_ms, stage.p95_ms), strict=True):
                yield (stage.name, quantile), milliseconds / 1000


_stores, _backends, _stages = (partial(_each, part) for part in ("stores", "backends", "stages"))

METRICS: tuple[Metric, ...] = (
    Metric("memoryd_state", "gauge", "1 for the state that the profile is in", lambda s: _states((), s.state), ("state",)),
    Metric("memoryd_log_events", "gauge", "events that the log has", _log(lambda log: log.head)),
    Metric("memoryd_log_unsynced_events", "gauge", "events not yet safe against power loss", _log(lambda log: log.head - log.synced)),
    Metric("memoryd_log_power_safe", "gauge", "0 after a failed sync, until the log has been rewritten", _log(lambda log: log.power_safe)),
    Metric("memoryd_held_events", "gauge", "events held in memory while the log is locked", _log(lambda log: log.held)),
    Metric("memoryd_refused_events_total", "counter", "events that the log refused since open", _log(lambda log: log.refused)),
    Metric("memoryd_unfinished_forgets", "gauge", "forgets that are still erasing", _log(lambda log: log.erasing)),
    Metric("memoryd_store_bytes", "gauge", "size of each store file", _stores(lambda one: one.bytes), ("store",)),
    Metric("memoryd_store_wal_bytes", "gauge", "size of its write-ahead log", _stores(lambda one: one.wal_bytes), ("store",)),
    Metric("memoryd_backend_state", "gauge", "1 for the state that the backend is in", _backend_states, ("backend", "state")),
    Metric("memoryd_backend_backlog_events", "gauge", "events that wait for it", _backends(lambda one: one.backlog), ("backend",)),
    Metric("memoryd_backend_oldest_seconds", "gauge", "age of the oldest of them", _backends(lambda one: one.oldest_age), ("backend",)),
    Metric("memoryd_backend_dead_letters", "gauge", "events that it refused for good", _backends(lambda one: one.dead), ("backend",)),
    Metric("memoryd_gate_refusals", "gauge", "refusals in a row, over all sessions", _one(lambda s: s.gate.refusals)),
    Metric("memoryd_archive_bytes", "gauge", "size of the archive", _one(lambda s: s.gate.bytes)),
    Metric("memoryd_stage_calls_total", "counter", "calls of each stage since open", _stages(lambda one: one.calls), ("stage",)),
    Metric("memoryd_stage_seconds_total", "counter", "seconds spent in it", _stages(lambda one: one.total_ms / 1000), ("stage",)),
    Metric("memoryd_stage_latency_seconds", "gauge", "what that share of its latest calls took at most", _quantiles, ("stage", "quantile")),
    Metric("memoryd_queue_length", "gauge", "what waits in each queue", _queues, ("queue",)),
    Metric("memoryd_task_crashes_total", "counter", "crashes of tasks, all contained", _one(lambda s: sum(t.crashes for t in s.tasks))),
)


def renderer(pool: Runtimes) -> Callable[[], Awaitable[str]]:
    """The function that gives the text for one scrape.  Raises :class:`ConfigError` where the optional package is missing."""
    try:
        import prometheus_client.core  # only where somebody asks for metrics
    except ImportError:
        raise ConfigError("--metrics: needs the package prometheus-client: pip install 'memoryd[metrics]'") from None

    async def render() -> str:
        return _text(prometheus_client, await _statuses(pool))

    return render


async def _statuses(pool: Runtimes) -> list[Status]:
    """Of every open profile; of two homes with a profile of one name the first counts, for a series has one value."""
    found: dict[str, Status] = {}
    for runtime in list(pool.runtimes()):
        if runtime.profile not in found:
            try:
                found[runtime.profile] = await runtime.status()
            except MemorydError:  # it was closed meanwhile
                continue
    return list(found.values())


def _text(client: ModuleType, statuses: Sequence[Status]) -> str:
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(_Collector(client, statuses))
    text: bytes = client.generate_latest(registry)
    return text.decode("utf-8")


@attrs.frozen(slots=True, eq=False)
class _Collector:
    """What the package asks for its families of numbers."""

    client: ModuleType
    statuses: Sequence[Status]

    def collect(self) -> Iterator[Any]:
        kinds = {"gauge": self.client.core.GaugeMetricFamily, "counter": self.client.core.CounterMetricFamily}
        info = kinds["gauge"]("memoryd_info", "the version that serves, and how many profiles are open", labels=("version",))
        info.add_metric((__version__,), len(self.statuses))
        yield info
        for metric in METRICS:
            family = kinds[metric.kind](metric.name, metric.help, labels=("profile", *metric.labels))
            for status in self.statuses:
                for labels, number in metric.read(status):
                    family.add_metric((status.profile, *labels), number)
            yield family
