"""``memoryd gate``: status, release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memoryd.cli._group import Options, command, pass_options, shared
from memoryd.cli._output import plain, to_json, write_json, write_line
from memoryd.cli._session import run

if TYPE_CHECKING:
    from memoryd.core import GateStatus
    from memoryd.runtime import Runtime


@click.group(name="gate")
@shared
def gate() -> None:
    """The gate before a compaction: its state, and a way past it."""


@command(name="status")
@pass_options
def status(options: Options) -> None:
    """What a checkpoint would meet now: the mode, where the archive is, refusals, releases.

    \b
    Examples:
      memoryd gate status
      memoryd gate status --json
    """

    async def work(runtime: Runtime) -> GateStatus:
        return (await runtime.status()).gate

    found = run(options, work)
    if options.json:
        write_json(to_json(found))
        return
    for name, value in to_json(found).items():
        if value not in ("", []):
            write_line(f"{name}: {plain(', '.join(value) if isinstance(value, list) else str(value))}")


@command(name="release")
@click.argument("name", metavar="SESSION")
@click.option("--once", is_flag=True, help="For the next checkpoint of the session only.")
@pass_options
def release(options: Options, name: str, once: bool) -> None:
    """Let compactions of SESSION go on where their transcript cannot be archived.  What is then cut is lost.

    \b
    Examples:
      memoryd gate release s1 --once
    """

    async def work(runtime: Runtime) -> None:
        await runtime.release(name, once=once)

    run(options, work)
    if options.json:
        write_json({"session": name, "once": once, "released": True})
    else:
        write_line(f"released {plain(name)}" + (" for its next checkpoint" if once else " until memoryd gate is set back"))


for sub in (status, release):
    gate.add_command(sub)
