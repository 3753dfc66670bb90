"""``memoryd history``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import missing, table, to_json, when, write_json
from memoryd.cli._session import run

if TYPE_CHECKING:
    from memoryd.core import MemoryVersion
    from memoryd.runtime import Runtime


@command(name="history")
@click.argument("key")
@pass_options
def history(options: Options, key: str) -> int:
    """Every value that KEY had, newest first, with the time from and until which it held.

    \b
    Examples:
      memoryd history city
      memoryd history --json city
    """

    async def work(runtime: Runtime) -> list[MemoryVersion]:
        await runtime.catch_up(runtime.config.deadlines.retrieve)
        return await runtime.history(key)

    versions = run(options, work)
    if not versions:
        return missing(options.json, f"key {key!r} has no history")
    if options.json:
        write_json({"key": key, "versions": to_json(versions)})
    else:
        table(("from", "until", "value"), ((when(v.valid_from), when(v.valid_until) or "now", v.value) for v in versions))
    return 0
