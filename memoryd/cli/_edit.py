"""``memoryd edit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._session import run
from memoryd.cli._store import show_stored, stdin_text

if TYPE_CHECKING:
    from memoryd.core import Stored
    from memoryd.runtime import Runtime


@command(name="edit")
@click.argument("id")
@click.argument("text", required=False)
@click.option("--user-text", metavar="TEXT", help="What the user said in a turn.")
@click.option("--assistant-text", metavar="TEXT", help="What was answered in a turn.")
@pass_options
def edit(options: Options, id: str, text: str | None, user_text: str | None, assistant_text: str | None) -> int:
    """Correct a memory or a turn, keeping its ID (`memoryd recall` shows it).

    TEXT is a memory's new value, or the user's words of a turn; without it and without an option, standard input is read.

    \b
    Examples:
      memoryd edit 0f3c9a41b2d84e6f9a7c5d1e2b3a4f60 "Oslo, Norway"
      memoryd edit 0f3c9a41b2d84e6f9a7c5d1e2b3a4f60 --assistant-text "Noted: Oslo."
    """
    if text is not None and (user_text, assistant_text) != (None, None):
        raise click.UsageError("Give TEXT, or --user-text and --assistant-text, not both.")
    value = text if (text, user_text, assistant_text) != (None, None, None) else stdin_text("TEXT")

    async def work(runtime: Runtime) -> Stored:
        await runtime.catch_up(runtime.config.deadlines.retrieve)
        return await runtime.edit(id, value, user=user_text, assistant=assistant_text)

    return show_stored(options, run(options, work))
