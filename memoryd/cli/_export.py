"""``memoryd export``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import plain, progress, to_json, write_json, write_line
from memoryd.cli._session import loaded, take_in_hooks

if TYPE_CHECKING:
    from memoryd.runtime import Exported


@command(name="export")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--all-users", is_flag=True, help="Everybody's events, not only those of --user.")
@click.option("--all-profiles", is_flag=True, help="Every profile of the home: FILE is a directory, with one file for each.")
@pass_options
def export(options: Options, file: Path, all_users: bool, all_profiles: bool) -> None:
    """Write the user's events to FILE (default: standard output) as JSON lines: turns, memories with their history, edits,
    deletions, forgets, session marks.  Checkpoints are not part of it.

    FILE is readable by you alone, and replaced only when all of it is on disk.  What was forgotten has no words left to
    export; the same events give the same bytes.

    \b
    Examples:
      memoryd export ada.jsonl --user ada
      memoryd export --all-users > everything.jsonl
      memoryd export --all-users --all-profiles exports/
    """
    user = None if all_users else options.user_name
    if not all_profiles:
        done = _one(options, options.profile_name, user, file)
        if str(file) != "-":
            _print(options, [{"file": str(file), **to_json(done)}], single=True)
        return
    if str(file) == "-":
        raise click.UsageError("Say in which directory the files of the profiles go.")
    _print(options, list(_all(options, user, file)), single=False)


def _all(options: Options, user: str | None, directory: Path) -> Iterator[dict[str, Any]]:
    from memoryd.core import profile_folder
    from memoryd.maintain import profile_names
    from memoryd.store import private_directory

    names = profile_names(loaded(options).home)
    private_directory(directory.absolute())
    for name in names:
        file = directory / f"{profile_folder(name)}.jsonl"
        yield {"profile": name, "file": str(file), **to_json(_one(options, name, user, file))}


def _one(options: Options, name: str, user: str | None, file: Path) -> Exported:
    from memoryd.runtime import export_events

    here = attrs.evolve(options, profile=name)
    take_in_hooks(here)
    found = loaded(here)
    to_stdout = str(file) == "-"
    with progress("exporting", shown=not (to_stdout and sys.stdout.isatty())) as told:
        target = sys.stdout.buffer if to_stdout else file
        return export_events(found.home, found.profile, found.config, user, target, told)


def _print(options: Options, done: list[dict[str, Any]], *, single: bool) -> None:
    if options.json:
        write_json(done[0] if single else {"exports": done, "count": len(done)})
        return
    for one in done:
        whose = "all users" if one["user"] is None else plain(one["user"])
        write_line(f"exported {one['events']} events of {whose} to {plain(one['file'])}")
        if one["unreadable"]:
            write_line(f"warning: {one['unreadable']} events are damaged and stand as erased; see 'memoryd status'")
