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
@click.argument("given", metavar="[SOURCE] [PATH]...", nargs=-1)
@click.option("--all-users", is_flag=True, help="Take in a file that was exported with --all-users.")
@click.option("--dry-run", is_flag=True, help="Of a SOURCE: only count what would be taken in.")
@pass_options
def import_(options: Options, given: tuple[str, ...], all_users: bool, dry_run: bool) -> None:
    """Take in what `memoryd export` wrote, from a file (default: standard input): with ids, times and order.

    The file is read once before anything is kept: where a line is wrong, it is named and nothing is imported.  Events that
    are here already are passed over, so that the same import again adds nothing, and one that was killed is just run
    again.  With --user, a file about somebody else is refused.

    With a SOURCE, take in what an agent program has kept of its own, as --user's: claude (such as ~/.claude/projects), codex
    (~/.codex/sessions), openai-json (lists of messages), hermes (~/.hermes), hermes-memory.  What is here
    already is passed over.

    \b
    Examples:
      memoryd import ada.jsonl
      memoryd import claude ~/.claude/projects --dry-run
      memoryd import --all-users < everything.jsonl
    """
    from memoryd.hosts import source_names

    if given and given[0] in source_names():
        return _import_history(options, given[0], [Path(path) for path in given[1:]], dry_run)
    if dry_run or len(given) > 1:
        problem = "--dry-run is for a SOURCE" if dry_run else f"{given[0]!r} is no SOURCE ({', '.join(source_names())})"
        raise click.UsageError(f"{problem}; an export is one file")
    return _import_export(options, Path(given[0] if given else "-"), all_users)


def _import_history(options: Options, name: str, paths: list[Path], dry_run: bool) -> None:
    from memoryd.hosts import find_source, import_history

    if not paths:
        raise click.UsageError(f"say where: memoryd import {name} PATH; it takes {find_source(name).help}")
    found, source = loaded(options), find_source(name)
    with progress("importing") as told:
        done = import_history(
            found.home, found.profile, found.config, source, paths, user=options.user_name, dry_run=dry_run, on_progress=told
        )
    if not dry_run:
        with busy("indexing"):
            run(options, _projected)
    if options.json:
        write_json({**to_json(done), "dry_run": dry_run})
        return
    rest = done.events - done.added - done.kept_out
    write_line(
        f"{'would import' if dry_run else 'imported'} {done.added} of {done.events} events"
        + (f"; {rest} are here already" if rest else "")
        + (f"; {done.kept_out} are kept out of memory" if done.kept_out else "")
    )


def _import_export(options: Options, file: Path, all_users: bool) -> None:
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
