"""``memoryd get``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import missing, plain, to_json, write_json, write_line
from memoryd.cli._session import run

if TYPE_CHECKING:
    from memoryd.core import Memory
    from memoryd.runtime import Runtime


@command(name="get")
@click.argument("key")
@pass_options
def get(options: Options, key: str) -> int:
    """Print the memory under KEY; exit code 1 where there is none.

    \b
    Examples:
      memoryd get city
      memoryd get --json city
    """

    async def work(runtime: Runtime) -> Memory | None:
        await runtime.catch_up(runtime.config.deadlines.retrieve)
        return await runtime.retrieve(key)

    memory = run(options, work)
    if memory is None:
        return missing(options.json, f"no memory found for key {key!r}")
    if options.json:
        write_json(to_json(memory))
    else:
        write_line(plain(memory.value))
    return 0
