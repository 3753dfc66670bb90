"""``memoryd forget``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from memoryd.cli._ask import ask
from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import busy, to_json, write_json, write_line
from memoryd.cli._session import run, take_in_hooks
from memoryd.cli._types import TIME

if TYPE_CHECKING:
    from memoryd.core import Forgotten
    from memoryd.runtime import Runtime


@command(name="forget")
@click.argument("id", required=False)
@click.option("--key", metavar="KEY", help="A memory with its whole history.")
@click.option("--since", type=TIME, metavar="TIME", help="What was recorded at or after that time: ISO 8601.")
@click.option("--until", type=TIME, metavar="TIME", help="What was recorded before that time: ISO 8601.")
@click.option("--all", "everything", is_flag=True, help="All of the user.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@pass_options
def forget(
    options: Options, id: str | None, key: str | None, since: str | None, until: str | None, everything: bool, yes: bool
) -> None:
    """Erase from every file: by ID, --key, --session, time, or --all of the user.  Several of them narrow.

    It cannot be undone.  On a terminal it asks first; --all without one needs --yes.

    \b
    Examples:
      memoryd forget --key city
      memoryd forget --session s1 --yes
      memoryd forget --user ada --all --yes --json
    """
    if (id, key, since, until, options.session) == (None,) * 5 and not everything:
        raise click.UsageError("Say what to forget: ID, --key, --session, --since, --until or --all.")
    if everything or (not options.json and sys.stdin.isatty()):
        ask(f"Erase {'all' if everything else 'this'} of user {options.user_name!r} for good?", yes=yes)

    async def work(runtime: Runtime) -> Forgotten:
        await runtime.catch_up(runtime.config.deadlines.retrieve)
        return await runtime.forget(
            id, key=key, session=options.session, since=since, until=until, everything=everything
        )

    with busy("erasing"):
        take_in_hooks(options)  # what was said before is recorded before, so that it goes too
        forgotten = run(options, work)
    _print(options, forgotten)


def _print(options: Options, forgotten: Forgotten) -> None:
    if options.json:
        write_json(to_json(forgotten))
        return
    write_line(f"erased {forgotten.erased}")
    if forgotten.pending:
        write_line(f"pending {forgotten.pending}: goes on at the next start")
    if forgotten.quoted:
        write_line(f"quoted {forgotten.quoted}: the same words stand in other turns, which were not erased")
    for warning in forgotten.warnings:
        write_line(f"warning: {warning}")
