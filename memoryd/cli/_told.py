"""A status as people read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from memoryd.cli._output import plain, table, when, write_line
from memoryd.core import from_micros

if TYPE_CHECKING:
    from memoryd.core import BackendStatus, LogStatus, Status
    from memoryd.doctor import DaemonSeen, HostSeen
    from memoryd.hosts import Pause

__all__ = ["tell_around", "tell_profile"]


def tell_profile(found: Status, served_by: str) -> None:
    """One profile: a line for each part, then what has many rows."""
    write_line(f"{found.state}  profile {plain(found.profile)}  {plain(found.directory)}")
    write_line(f"{served_by}  process {found.pid}  memoryd {plain(found.version)}  since {_at(found.opened_at)}")
    if found.log is not None:
        _log(found.log)
    for backend in found.backends:
        _backend(backend)
    gate = found.gate
    write_line(f"gate {gate.mode} (by {gate.decided_by})  refusals {gate.refusals}  releases {len(gate.released)}  bytes {gate.bytes}")
    if gate.last_error:
        write_line(f"    the archive cannot be read: {gate.last_error}; memoryd doctor says more")
    write_line("waiting  " + "  ".join(f"{name} {count}" for name, count in found.queues.items()))
    for note in (*found.notes, gate.warning):
        if note:
            write_line(f"note: {plain(note)}")
    _tables(found)


def _log(log: LogStatus) -> None:
    safe = "yes" if log.power_safe else "no"
    rare = {"erasing": log.erasing, "unreadable": log.unreadable, "quarantined": log.quarantined}
    more = "".join(f"  {name} {count}" for name, count in rare.items() if count)
    write_line(f"log {log.state}  events {log.head}  power-safe: {safe}  held {log.held}  refused {log.refused}  bytes {log.bytes}{more}")
    if log.last_error:
        write_line(f"    last error {log.last_error}")


def _backend(backend: BackendStatus) -> None:
    rows = " ".join(f"{name} {count}" for name, count in backend.rows.items())
    place = f"cursor {backend.cursor}  backlog {backend.backlog}  dead {backend.dead}"
    write_line(f"{backend.role} {backend.label} {backend.state}  {place}  {rows}".rstrip())
    if backend.backlog:
        write_line(f"    the oldest waits for {backend.oldest_age:.1f} s")
    if backend.degraded_since is not None:
        write_line(f"    degraded since {_at(backend.degraded_since)}")
    elif backend.recovered_at is not None:
        write_line(f"    recovered at {_at(backend.recovered_at)}, {backend.recovered} sent since")
    if backend.last_error:
        write_line(f"    last error {backend.last_error}")
    if backend.owner is not None:
        write_line(f"    process {backend.owner} delivers" + (" and stands still" if backend.owner_stopped else ""))


def _tables(found: Status) -> None:
    stores = ((store.name, store.bytes, store.wal_bytes, _at(store.last_write), store.path) for store in found.stores)
    table(("store", "bytes", "wal bytes", "last write", "path"), stores)
    stages = ((stage.name, stage.calls, stage.p50_ms, stage.p95_ms) for stage in found.stages if stage.calls)
    table(("stage", "calls", "p50 ms", "p95 ms"), stages)
    table(("at", "session", "host", "verdict", "cause", "ms"), map(_receipt, found.gate.receipts))
    table(("task", "state", "crashes", "error"), ((t.name, t.state, t.crashes, t.last_error) for t in found.tasks if t.crashes))


def _receipt(receipt: Any) -> tuple[object, ...]:
    at = receipt.get("at")
    return (_at(at if isinstance(at, int) else None), *(receipt.get(name, "") for name in ("session", "host", "verdict", "cause", "ms")))


def tell_around(daemon: DaemonSeen, hosts: Iterable[HostSeen], paused: Pause | None) -> None:
    """What is the same for every profile: the daemon, the agent programs, and whether these are recorded."""
    if paused is not None:
        write_line(f"recording of agent programs is paused since {_at(paused.since)} until {_at(paused.until) or 'memoryd resume'}")
    if daemon.running:
        write_line(f"daemon process {daemon.pid or '?'}  memoryd {plain(daemon.version) or '?'}  {plain(daemon.socket)}")
    else:
        write_line("daemon none")
    if daemon.problem:
        write_line(f"note: the daemon: {plain(daemon.problem)}")
    rows = ((host.name, "installed" if host.installed else "not installed", host.capability, host.problem or host.says) for host in hosts)
    table(("host", "memoryd", "gate", "what it means"), rows)


def _at(micros: int | None) -> str:
    return when(None if micros is None else from_micros(micros))
