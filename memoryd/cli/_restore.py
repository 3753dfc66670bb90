"""``memoryd restore``."""

from __future__ import annotations

import sys
from pathlib import Path

import attrs
import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import plain, progress, to_json, write_json, write_line
from memoryd.cli._session import loaded


@command(name="restore")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--yes", "-y", is_flag=True, help="Do not ask before a profile is replaced.")
@pass_options
def restore(options: Options, file: Path, yes: bool) -> None:
    """Make the backup in FILE the profile that it is of, or the one that --profile names.

    All of FILE is checked first.  What was forgotten since the backup is forgotten again.  The profile that was there is kept aside,
    and FILE stays as it is.  Nobody may use the profile meanwhile.  Remote backends get everything again, by id.

    \b
    Examples:
      memoryd restore monday.memoryd-backup
      memoryd restore monday.memoryd-backup --profile monday --json
    """
    from memoryd.maintain import profile_names, read_manifest
    from memoryd.maintain import restore as bring_back

    manifest = read_manifest(file)
    name = options.profile if options.profile is not None else manifest.name
    found = loaded(attrs.evolve(options, profile=name))
    if not yes and not options.json and sys.stdin.isatty() and name in profile_names(found.home):
        click.confirm(f"Replace the profile {name!r} by the backup of {manifest.created}?  It is kept aside.", abort=True)
    with progress("restoring") as told:
        done = bring_back(found.home, file, manifest, found.config, name, told)
    if options.json:
        write_json(to_json(done))
        return
    write_line(f"restored profile {plain(done.profile)}: {done.events} events, as of {done.created}")
    if done.forgets:
        write_line(f"forgotten again {done.forgets}: what was forgotten after the backup")
    if done.kept:
        write_line(f"kept {plain(done.kept)}: the profile as it was before")
    for warning in done.warnings:
        write_line(f"warning: {plain(warning)}")
