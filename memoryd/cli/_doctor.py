"""``memoryd doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import busy, table, write_json, write_line
from memoryd.cli._state import exit_code

if TYPE_CHECKING:
    from memoryd.doctor import Finding


@command(name="doctor")
@click.argument("host", required=False)
@click.option("--all-profiles", is_flag=True, help="Look at every profile of the home.")
@pass_options
def doctor(options: Options, host: str | None, all_profiles: bool) -> int:
    """Look for what is wrong, and say what to do about it: program, disk, settings, stores, gate, backends, daemon; with HOST the
    agent program of that name.

    It writes and reads for real, in a home of its own beside the profiles, and leaves nothing there.  Exit code 0 where all is well,
    3 where something should be looked at, 1 where something is broken.

    \b
    Examples:
      memoryd doctor
      memoryd doctor claude-code
      memoryd doctor --all-profiles --json
    """
    import trio

    from memoryd.doctor import state_of

    with busy("looking"):
        found = trio.run(_examine, options, host, all_profiles)
    state = state_of(finding.check for finding in found)
    if options.json:
        write_json({"state": state, "checks": [_as_json(finding) for finding in found]})
    else:
        _print(state, found)
    return exit_code(state)


async def _examine(options: Options, host: str | None, all_profiles: bool) -> list[Finding]:
    from memoryd.doctor import examine
    from memoryd.settings import resolve_home

    home = resolve_home(options.home)
    profiles = None if all_profiles else (options.profile_name,)
    return [finding async for finding in examine(home, profiles, host)]


def _as_json(finding: Finding) -> dict[str, str]:
    check = finding.check
    return {"profile": finding.profile, "name": check.name, "state": check.state, "said": check.said, "remedy": check.remedy}


def _print(state: str, found: list[Finding]) -> None:
    several = len({finding.profile for finding in found} - {""}) > 1
    names = [f"{f.profile}: {f.check.name}" if several and f.profile else f.check.name for f in found]
    checks = [finding.check for finding in found]
    rows = ((check.state, name, check.said, check.remedy) for name, check in zip(names, checks, strict=True))
    table(("state", "check", "found", "what to do"), rows)
    write_line(state)
