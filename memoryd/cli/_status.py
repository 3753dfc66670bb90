"""``memoryd status``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import plain, table, to_json, write_json, write_line
from memoryd.cli._session import run

if TYPE_CHECKING:
    from memoryd.core import Status
    from memoryd.runtime import Runtime


@command(name="status")
@pass_options
def status(options: Options) -> int:
    """What memoryd holds, and how it is: log, backends, gate, tasks.  Exit code 1 where a part is broken.

    \b
    Examples:
      memoryd status
      memoryd status --profile work --json
    """

    async def work(runtime: Runtime) -> Status:
        await runtime.catch_up(runtime.config.deadlines.retrieve)
        return await runtime.status()

    found = run(options, work)
    if options.json:
        write_json(to_json(found))
    else:
        _print(found)
    return 1 if found.state == "broken" else 0


def _print(found: Status) -> None:
    write_line(f"{found.state}  profile {plain(found.profile)}  {plain(found.directory)}")
    if (log := found.log) is not None:
        safe = "yes" if log.power_safe else "no"
        write_line(f"log {log.state}  events {log.head}  power-safe: {safe}  held {log.held}  refused {log.refused}  bytes {log.bytes}")
        if log.last_error:
            write_line(f"    last error {log.last_error}")
    for backend in found.backends:
        rows = " ".join(f"{name} {count}" for name, count in backend.rows.items())
        write_line(f"{backend.role} {backend.label} {backend.state}  backlog {backend.backlog}  dead {backend.dead}  {rows}".rstrip())
        if backend.last_error:
            write_line(f"    last error {backend.last_error}")
    write_line(f"gate {found.gate.mode}  refusals {found.gate.refusals}  bytes {found.gate.bytes}")
    for note in (*found.notes, found.gate.warning):
        if note:
            write_line(f"note: {plain(note)}")
    table(("task", "state", "crashes", "error"), ((t.name, t.state, t.crashes, t.last_error) for t in found.tasks if t.crashes))
