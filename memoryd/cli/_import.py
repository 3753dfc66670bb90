"""``memoryd import``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from typing import IO, TYPE_CHECKING

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import busy, progress, to_json, write_json, write_line
from memoryd.cli._session import loaded, run

if TYPE_CHECKING:
    from memoryd.runtime import Runtime
    from memoryd.settings import Loaded


@command(name="import")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--all-users", is_flag=True, help="Take in a file that was exported with --all-users.")
@pass_options
def import_(options: Options, file: Path, all_users: bool) -> None:
    """Take in what `memoryd export` wrote, from FILE (default: standard input): with ids, times and order.

    The file is read once before anything is kept: where a line is wrong, it is named and nothing is imported.  Events that
    are here already are passed over, so that the same import again adds nothing, and one that was killed is just run
    again.  With --user, a file about somebody else is refused.

    \b
    Examples:
      memoryd import ada.jsonl
      memoryd import --all-users < everything.jsonl
    """
    from memoryd.runtime import import_events

    found = loaded(options)
    with _twice(found, file) as source, progress("importing") as told:
        done = import_events(
            found.home, found.profile, found.config, source, user=options.user, all_users=all_users, on_progress=told
        )
    with busy("indexing"):
        run(options, _projected)
    if options.json:
        write_json(to_json(done))
        return
    write_line(f"imported {done.added} of {done.events} events" + ("" if done.added == done.events else "; the others were here"))
    if done.forgets:
        write_line(f"{done.forgets} of them erase something that was here")


@contextmanager
def _twice(found: Loaded, file: Path) -> Iterator[IO[bytes]]:
    """FILE, or a private copy where it can be read only once."""
    if str(file) != "-" and file.is_file():
        with open(file, "rb") as stream:
            yield stream
        return
    from memoryd.store import open_profile

    directory = open_profile(found.home, found.profile).directory
    with tempfile.TemporaryFile(dir=directory) as copy:
        if str(file) == "-":
            copyfileobj(sys.stdin.buffer, copy)
        else:
            with open(file, "rb") as stream:
                copyfileobj(stream, copy)
        yield copy


async def _projected(runtime: Runtime) -> None:
    await runtime.catch_up(runtime.config.deadlines.drain)
