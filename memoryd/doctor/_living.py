"""What an open runtime says of itself: how far its backends are, what they refused, whether what it writes is safe."""

from __future__ import annotations

from collections.abc import Iterator

from memoryd.core import BackendStatus, LogStatus, Status
from memoryd.doctor._verdict import REPAIR, broken, doubtful, fine
from memoryd.hosts import Check

__all__ = ["living"]

_LOCAL = "nothing is lost: see the checks of the stores above"
_FAR = "nothing is lost, they are sent when it answers again: check that it is reachable and its key valid"
_LATE = 60.0  # seconds that an event may wait for a backend before somebody should look


def living(status: Status) -> Iterator[Check]:
    if status.log is not None:
        yield _writing(status.log)
    for backend in status.backends:
        yield from _backend(backend)
    for task in status.tasks:
        if task.state == "failed":
            said = f"the task {task.name} ended after {task.crashes} crashes ({task.last_error})"
            yield broken("tasks", said, "this is an error inside memoryd: please report it; a restart begins anew")
    if status.gate.warning:
        yield doubtful("archive-quota", status.gate.warning, "raise gate.quota_bytes, or forget old sessions")


def _writing(log: LogStatus) -> Check:
    if log.state == "broken":
        return broken("writing", f"the log does not answer ({log.last_error})", REPAIR)
    if not log.power_safe:
        return broken("writing", "the disk refused to sync the log: what was written may not survive power loss", "check the disk (dmesg)")
    if log.held:
        return doubtful("writing", f"{log.held} events wait in memory for the log's lock", "end the process that holds it, or let it go on")
    if log.refused:
        return doubtful("writing", f"{log.refused} events were refused ({log.last_error})", "mend that; those were not recorded")
    if log.erasing:
        return doubtful("writing", f"{log.erasing} forgets are not finished", "keep memoryd open until they are")
    return fine("writing", f"{log.head} events, safe against power loss up to {log.synced}")


def _backend(backend: BackendStatus) -> Iterator[Check]:
    name = f"delivery {backend.name}"
    if backend.owner_stopped:
        said = f"process {backend.owner} delivers to it and gives no sign of life"
        yield doubtful(name, said, f"let it go on (kill -CONT {backend.owner}) or end it (kill {backend.owner}): another takes over")
    if backend.state == "broken":
        remedy = "memoryd repair rebuilds it from the log" if backend.name == "local" else "see its last error; memoryd replay sends again"
        yield broken(name, f"it is broken ({backend.last_error})", remedy)
    elif not backend.owner_stopped and (backend.state == "degraded" or (backend.backlog and backend.oldest_age > _LATE)):
        said = f"{backend.backlog} events wait, the oldest for {backend.oldest_age:.0f} s ({backend.last_error or 'no error'})"
        yield doubtful(name, said, _LOCAL if backend.name == "local" else _FAR)
    elif not backend.owner_stopped and backend.state != "off":
        yield fine(name, f"{backend.state}, {backend.backlog} events wait")
    if backend.dead:
        said = f"{backend.dead} events were refused by {backend.name} for good; the log and local memory have them"
        yield doubtful("dead-letters", said, f"memoryd dead names them; memoryd replay --to {backend.name} sends again")
