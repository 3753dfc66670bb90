"""``memoryd profiles``: list, create, copy, rename, delete, rekey."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import click

from memoryd.cli._ask import ask
from memoryd.cli._group import Options, command, pass_options, shared
from memoryd.cli._output import plain, progress, table, to_json, write_json, write_line
from memoryd.cli._session import loaded

if TYPE_CHECKING:
    from memoryd.maintain import Copied
    from memoryd.settings import Loaded


@click.group(name="profiles")
@shared
def profiles() -> None:
    """The profiles of the home: each has files of its own, and shares nothing."""


def _of(options: Options, name: str) -> Loaded:
    """The configuration of the profile ``name``."""
    return loaded(attrs.evolve(options, profile=name))


@command(name="list")
@pass_options
def list_(options: Options) -> int:
    """List the profiles of the home, with their folders and sizes.  Exit code 1 where one cannot be used.

    \b
    Examples:
      memoryd profiles list
      memoryd profiles list --json
    """
    from memoryd.maintain import list_profiles

    found = list_profiles(loaded(options).home)
    if options.json:
        write_json({"profiles": [{**to_json(one), "directory": str(one.directory)} for one in found], "count": len(found)})
    else:
        table(("name", "bytes", "directory", "problem"), ((one.name, one.bytes, one.directory, one.problem) for one in found))
    return 1 if any(one.problem for one in found) else 0


@command(name="create")
@click.argument("name")
@pass_options
def create(options: Options, name: str) -> None:
    """Make the empty profile NAME.  The first use of a profile makes it, too.

    \b
    Examples:
      memoryd profiles create work
    """
    from memoryd.maintain import create_profile

    made = create_profile(loaded(options).home, name)
    if options.json:
        write_json({**to_json(made), "directory": str(made.directory)})
    else:
        write_line(f"created profile {plain(made.name)} in {plain(str(made.directory))}")


@command(name="copy")
@click.argument("old")
@click.argument("new")
@pass_options
def copy(options: Options, old: str, new: str) -> None:
    """Make the profile NEW of what OLD holds now.  OLD may be in use.

    The copy is a profile of its own, with its own key: it never delivers to a remote backend as OLD, and its checkpoints have other
    ids.  The configuration of OLD is not copied.

    \b
    Examples:
      memoryd profiles copy work experiment
    """
    from memoryd.maintain import copy_profile

    found = _of(options, old)
    with progress("copying") as told:
        done = copy_profile(found.home, old, new, found.config, told)
    _print_copied(options, done, f"copied profile {plain(old)} to {plain(new)}: {done.events} events")


@command(name="rename")
@click.argument("old")
@click.argument("new")
@pass_options
def rename(options: Options, old: str, new: str) -> None:
    """Give the profile OLD the name NEW; everything in it stays.  Nobody may use it meanwhile.

    \b
    Examples:
      memoryd profiles rename work job
    """
    from memoryd.maintain import rename_profile

    found = _of(options, old)
    done = rename_profile(found.home, old, new, found.config)
    if options.json:
        write_json({**to_json(done), "directory": str(done.directory)})
    else:
        write_line(f"renamed profile {plain(old)} to {plain(new)}")


@command(name="delete")
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@pass_options
def delete(options: Options, name: str, yes: bool) -> None:
    """Delete the profile NAME with all its files, for good.  Its name is free again.  Nobody may use it meanwhile.

    Backups and exports of it stay where they are, and so does what remote backends hold.

    \b
    Examples:
      memoryd profiles delete experiment
      memoryd profiles delete experiment --yes --json
    """
    from memoryd.maintain import delete_profile

    found = _of(options, name)
    ask(f"Delete the profile {name!r} for good?", yes=yes)
    freed = delete_profile(found.home, name, found.config)
    if options.json:
        write_json({"deleted": name, "bytes": freed})
    else:
        write_line(f"deleted profile {plain(name)}: {freed} bytes")


@command(name="rekey")
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@pass_options
def rekey(options: Options, name: str, yes: bool) -> None:
    """Renew the key of the profile NAME, and make every digest anew.  Nobody may use it meanwhile.

    For a key that became known, and for a home that was copied by hand.  Checkpoints get other ids.  Remote backends get everything
    again under other names; what they hold under the old ones stays there.  The profile as it was is kept aside.

    \b
    Examples:
      memoryd profiles rekey work
    """
    from memoryd.maintain import rekey_profile

    found = _of(options, name)
    ask(f"Renew the key of the profile {name!r}?", yes=yes)
    with progress("rekeying") as told:
        done = rekey_profile(found.home, name, found.config, told)
    _print_copied(options, done, f"renewed the key of profile {plain(name)}: {done.events} events")


def _print_copied(options: Options, done: Copied, line: str) -> None:
    if options.json:
        write_json(to_json(done))
        return
    write_line(line)
    if done.kept:
        write_line(f"kept {plain(done.kept)}: the profile as it was before")
    for warning in done.warnings:
        write_line(f"warning: {plain(warning)}")


for sub in (list_, create, copy, rename, delete, rekey):
    profiles.add_command(sub)
