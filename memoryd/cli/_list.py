"""``memoryd list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import table, to_json, when, write_json
from memoryd.cli._session import run

if TYPE_CHECKING:
    from memoryd.core import Memory
    from memoryd.runtime import Runtime


@command(name="list")
@click.option("--limit", type=click.IntRange(min=0), help="Memories at most [all].")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out that many first.")
@pass_options
def list_memories(options: Options, limit: int | None, offset: int) -> None:
    """List the memories of the user, newest first.

    \b
    Examples:
      memoryd list
      memoryd list --user ada --limit 20 --json
    """

    async def work(runtime: Runtime) -> list[Memory]:
        await runtime.catch_up(runtime.config.deadlines.retrieve)
        return await runtime.list_memories(limit, offset)

    memories = run(options, work)
    if options.json:
        write_json({"memories": to_json(memories), "count": len(memories)})
    else:
        table(("key", "value", "type", "updated"), ((m.key, m.value, m.type, when(m.updated_at)) for m in memories))
