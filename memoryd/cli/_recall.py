"""``memoryd recall``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import plain, to_json, when, write_json, write_line
from memoryd.cli._session import run
from memoryd.cli._types import SECONDS, TIME

if TYPE_CHECKING:
    from memoryd.core import Recall
    from memoryd.runtime import Runtime


@command(name="recall")
@click.argument("query")
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, help="Results at most.")
@click.option("--as-of", type=TIME, metavar="TIME", help="As of that time: ISO 8601.")
@click.option("--wait", type=SECONDS, default=30.0, show_default=True, help="Seconds to wait for what is not indexed yet.")
@pass_options
def recall(options: Options, query: str, limit: int, as_of: str | None, wait: float) -> None:
    """Find turns and memories of the user, best first: of all sessions, or of --session.

    \b
    Examples:
      memoryd recall "when did we move the release"
      memoryd recall --session s1 --limit 3 --json deadline
      memoryd recall --as-of 2026-01-31T12:00:00Z address
    """

    async def work(runtime: Runtime) -> tuple[Recall, int]:
        behind = await runtime.catch_up(wait)
        return await runtime.recall(query, limit, as_of, options.session), behind

    found, behind = run(options, work)
    behind = max(behind, found.behind)
    if options.json:
        write_json({"hits": to_json(found.hits), "behind": behind, "stale": found.stale, "source": found.source})
    else:
        _print(found, behind)


def _print(found: Recall, behind: int) -> None:
    for hit in found:
        label = hit.key if hit.kind == "memory" else hit.role
        marks = f" (until {when(hit.valid_until)})" if hit.superseded else ""
        write_line(f"{when(hit.at)}  {hit.source}  {hit.id}  {plain(label or '')}{marks}")
        write_line("    " + plain(hit.text).replace("\n", "\n    "))
    if found.stale:
        click.echo("memoryd: the backend could not be asked; this answer may miss something: see 'memoryd status'", err=True)
    elif behind:
        click.echo(f"memoryd: {behind} events are not indexed yet; this answer may miss them", err=True)

