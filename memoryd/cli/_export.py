"""``memoryd export``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import plain, progress, to_json, write_json, write_line
from memoryd.cli._session import loaded, take_in_hooks


@command(name="export")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--all-users", is_flag=True, help="Everybody's events, not only those of --user.")
@pass_options
def export(options: Options, file: Path, all_users: bool) -> None:
    """Write the user's events to FILE (default: standard output) as JSON lines: turns, memories with their history, edits,
    deletions, forgets, session marks.  Checkpoints are not part of it.

    FILE is readable by you alone, and replaced only when all of it is on disk.  What was forgotten has no words left to
    export; the same events give the same bytes.

    \b
    Examples:
      memoryd export ada.jsonl --user ada
      memoryd export --all-users > everything.jsonl
    """
    from memoryd.runtime import export_events

    take_in_hooks(options)
    found = loaded(options)
    user = None if all_users else options.user_name
    to_stdout = str(file) == "-"
    with progress("exporting", shown=not (to_stdout and sys.stdout.isatty())) as told:
        target = sys.stdout.buffer if to_stdout else file
        done = export_events(found.home, found.profile, found.config, user, target, told)
    if to_stdout:
        return
    if options.json:
        write_json({"file": str(file), **to_json(done)})
        return
    write_line(f"exported {done.events} events of {'all users' if user is None else plain(user)} to {plain(str(file))}")
    if done.unreadable:
        write_line(f"warning: {done.unreadable} events are damaged and stand as erased; see 'memoryd status'")
