"""``memoryd install`` and ``memoryd uninstall``: plan, show, apply."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli._ask import ask
from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import busy, one_line, plain, write_json, write_line
from memoryd.errors import ConfigError, MemorydError

if TYPE_CHECKING:
    from memoryd.hosts import Host, Place, Plan

_scope = click.option(
    "--scope", metavar="SCOPE",
    help="user (default): for every project; project: for the working directory; plugin: for a plugin.  Not every host has each.",
)  # fmt: skip
_hermes_home = click.option("--hermes-home", metavar="DIR", help="Hermes Agent's home [$HERMES_HOME].")
_dry_run = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")


@command(name="install")
@click.argument("host", metavar="HOST|all")
@_scope
@click.option("--gate/--no-gate", default=None, help="Whether a failed checkpoint may refuse a compaction.")
@_hermes_home
@_dry_run
@pass_options
def install(options: Options, host: str, scope: str | None, gate: bool | None, hermes_home: str | None, dry_run: bool) -> int:
    """Put memoryd into an agent program: its hooks, its memory provider, its MCP server.

    Foreign settings and comments stay as they are; what is edited is backed up.  A second time changes nothing.

    \b
    Examples:
      memoryd install claude-code --dry-run
      memoryd install all
    """
    from memoryd.hosts import check_python, make_place

    place = make_place(options.home, _given(scope=scope, gate=gate, hermes_home=hermes_home))
    with busy("trying the interpreter"):
        check_python(place.python)
    return _all(options, host, place, dry_run, "install")


@command(name="uninstall")
@click.argument("host", metavar="HOST|all")
@_scope
@_hermes_home
@click.option("--purge", is_flag=True, help="Also delete what was recorded for this host alone; asks first.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_dry_run
@pass_options
def uninstall(
    options: Options, host: str, scope: str | None, hermes_home: str | None, purge: bool, yes: bool, dry_run: bool
) -> int:  # fmt: skip
    """Take memoryd out of an agent program.  What was recorded stays.

    \b
    Examples:
      memoryd uninstall claude-code
      memoryd uninstall all --dry-run
    """
    from memoryd.hosts import make_place

    if purge and not dry_run:
        ask("Delete what was recorded for this host?", yes=yes)
    place = make_place(options.home, _given(scope=scope, hermes_home=hermes_home, purge=purge or None))
    return _all(options, host, place, dry_run, "uninstall")


def _given(**options: str | bool | None) -> dict[str, str]:
    """What was given, as the port has it: flags as ``yes`` and ``no``."""
    words = {True: "yes", False: "no"}
    return {name: words[value] if isinstance(value, bool) else value for name, value in options.items() if value is not None}


def _all(options: Options, name: str, place: Place, dry_run: bool, action: str) -> int:
    from memoryd.hosts import find_host, host_names

    if name != "all":
        shown = _one(options, name, find_host(name), place, dry_run, action)
        if options.json:
            write_json(shown)
        return 0
    found = [one for host in host_names() if (one := _if_there(options, host, place, dry_run, action)) is not None]
    if options.json:
        write_json(found)
    elif not found:
        write_line(f"nothing to {action}: no agent program was found")
    return 1 if any("error" in one for one in found) else 0


def _if_there(options: Options, name: str, place: Place, dry_run: bool, action: str) -> dict[str, Any] | None:
    """One of ``all``: None where the host is not on this machine.  What is wrong with it is said; the others are not to blame."""
    from memoryd.hosts import find_host

    try:
        host = find_host(name)
        there = host.present(place) if action == "install" else host.installed(place)
        return _one(options, name, host, place, dry_run, action) if there else None
    except MemorydError as error:
        click.echo(f"memoryd: {name}: {one_line(str(error))}", err=True)
        return {"host": name, "error": one_line(str(error))}


def _one(options: Options, name: str, host: Host, place: Place, dry_run: bool, action: str) -> dict[str, Any]:
    from memoryd.hosts import apply_plan, foresee

    plan: Plan = host.plan_install(place) if action == "install" else host.plan_uninstall(place)
    applied = foresee(plan) if dry_run else apply_plan(plan, place.memoryd_home)
    if not options.json:
        _print(name, host, plan, applied.done, dry_run, action)
    changes = [
        {"path": str(one.path), "action": one.action, "why": one.why, "backup": str(one.backup) if one.backup else None}
        for one in applied.done
    ]
    return {
        "host": name, "action": action, "dry_run": dry_run, "capability": host.info.capability, "changes": changes,
        "notes": list(plan.notes),
    }  # fmt: skip


def _print(name: str, host: Host, plan: Plan, done: tuple[Any, ...], dry_run: bool, action: str) -> None:
    if not done:
        write_line(f"{name}: nothing to change")
    for one in done:
        backup = f" (before: {one.backup})" if one.backup else ""
        write_line(plain(f"{name}: {'would ' if dry_run else ''}{one.action} {one.path}: {one.why}{backup}"))
    if dry_run:
        for change in plan.changes:
            for line in _difference(change.path, change.content):
                write_line(plain(line))
    for note in plan.notes:
        write_line(plain(f"{name}: {note}"))
    if action == "install":
        write_line(plain(f"{name}: {host.info.says}"))


def _difference(path: Path, content: bytes | None) -> Iterator[str]:
    """What would change inside a file that is there, as a diff."""
    before = _bytes(path)
    if before is None or content is None:
        return
    old, new = (data.decode("utf-8", "replace").splitlines() for data in (before, content))
    yield from difflib.unified_diff(old, new, str(path), str(path), lineterm="", n=1)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
