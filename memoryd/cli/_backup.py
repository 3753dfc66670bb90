"""``memoryd backup``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import plain, progress, to_json, write_json, write_line
from memoryd.cli._session import loaded, take_in_hooks

if TYPE_CHECKING:
    from memoryd.maintain import BackedUp

ENDING = ".memoryd-backup"


@command(name="backup")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--all-profiles", is_flag=True, help="Every profile of the home: FILE is a directory, with one file for each.")
@pass_options
def backup(options: Options, file: Path, all_profiles: bool) -> None:
    """Write the profile into FILE: log, memories, checkpoints, name and key; while anybody uses it.

    FILE is readable by you alone, and replaced only when all of it was written, read again and compared.  It needs about twice the
    size of the profile beside it meanwhile.  A forget that comes later names it, and a restore forgets again.  Not part of it:
    configuration.

    \b
    Examples:
      memoryd backup monday.memoryd-backup
      memoryd backup --profile work /backups/work.memoryd-backup --json
      memoryd backup --all-profiles /backups/today
    """
    done = list(_all(options, file) if all_profiles else [_one(options, options.profile_name, file)])
    if options.json:
        write_json({"backups": to_json(done), "count": len(done)} if all_profiles else to_json(done[0]))
        return
    for one in done:
        write_line(f"backed up profile {plain(one.profile)}: {one.events} events, {one.bytes} bytes, in {plain(one.file)}")
        for warning in one.warnings:
            write_line(f"warning: {plain(warning)}")


def _all(options: Options, directory: Path) -> Iterator[BackedUp]:
    from memoryd.core import profile_folder
    from memoryd.maintain import profile_names
    from memoryd.store import private_directory

    names = profile_names(loaded(options).home)
    private_directory(directory.absolute())
    for name in names:
        yield _one(options, name, directory / f"{profile_folder(name)}{ENDING}")


def _one(options: Options, name: str, file: Path) -> BackedUp:
    from memoryd.maintain import back_up

    here = attrs.evolve(options, profile=name)
    take_in_hooks(here)
    found = loaded(here)
    with progress("backing up") as told:
        return back_up(found.home, name, found.config, file, told)
