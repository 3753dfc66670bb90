"""``memoryd dead``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import table, to_json, when, write_json
from memoryd.cli._session import run

if TYPE_CHECKING:
    from memoryd.journal import DeadLetter
    from memoryd.runtime import Runtime


@command(name="dead")
@pass_options
def dead(options: Options) -> None:
    """List the events that a backend refused for good.  They stay in the log, and local memory has them.

    \b
    Examples:
      memoryd dead
      memoryd dead --json
    """
    from memoryd.core import from_micros

    async def work(runtime: Runtime) -> list[DeadLetter]:
        return runtime.dead_letters()

    found = run(options, work)
    if options.json:
        letters = [{**to_json(letter), "at": from_micros(letter.at).isoformat()} for letter in found]
        write_json({"dead": letters, "count": len(letters)})
    else:
        table(("backend", "seq", "at", "reason"), ((d.backend, d.seq, when(from_micros(d.at)), d.reason) for d in found))
