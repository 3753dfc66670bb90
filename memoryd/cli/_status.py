"""``memoryd status``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import plain, to_json, write_bytes, write_json, write_line
from memoryd.cli._session import run
from memoryd.cli._state import exit_code
from memoryd.cli._told import tell_around, tell_profile
from memoryd.core import worst_state
from memoryd.errors import MemorydError

if TYPE_CHECKING:
    from memoryd.core import State, Status
    from memoryd.doctor import DaemonSeen, HostSeen
    from memoryd.hosts import Pause
    from memoryd.maintain import Profile
    from memoryd.runtime import Runtime

_EVERY = 2.0
_CLEAR = b"\x1b[H\x1b[2J"


@command(name="status")
@click.option("--watch", is_flag=True, help="Look again every two seconds, until interrupted.")
@click.option("--all-profiles", is_flag=True, help="Every profile of the home.")
@pass_options
def status(options: Options, watch: bool, all_profiles: bool) -> int:
    """What memoryd holds, and how it is: stores, log, backends, gate, stages, agent programs, daemon.

    Exit code 0 where all is well, 3 where a part is degraded (it works, and something waits or is not safe yet), 1 where a part is
    broken.

    \b
    Examples:
      memoryd status
      memoryd status --profile work --json
      memoryd status --all-profiles
      memoryd status --watch
    """
    from memoryd.doctor import see_daemon, see_hosts
    from memoryd.hosts import paused_now
    from memoryd.maintain import list_profiles
    from memoryd.settings import resolve_home

    home = resolve_home(options.home)
    hosts = see_hosts(home)
    while True:
        found: Sequence[Status | _Unread]
        found = [_try(options, profile) for profile in list_profiles(home)] if all_profiles else [_look(options)]
        state = worst_state(one.state for one in found)
        if watch and sys.stdout.isatty():
            write_bytes(_CLEAR)
        _tell(options, state, found, see_daemon(), hosts, paused_now(home), several=all_profiles)
        if not watch:
            return exit_code(state)
        time.sleep(_EVERY)


@attrs.frozen(slots=True)
class _Unread:
    """A profile whose state cannot be read at all."""

    profile: str
    problem: str
    state: State = "broken"


def _look(options: Options) -> Status:
    async def work(runtime: Runtime) -> Status:
        await runtime.catch_up(runtime.config.deadlines.retrieve)
        return await runtime.status()

    return run(options, work)


def _try(options: Options, profile: Profile) -> Status | _Unread:
    """One profile that cannot be opened hides none of the others."""
    if profile.problem:
        return _Unread(profile.name, profile.problem)
    try:
        return _look(attrs.evolve(options, profile=profile.name))
    except MemorydError as error:
        return _Unread(profile.name, str(error))


def _tell(
    options: Options,
    state: State,
    found: Sequence[Status | _Unread],
    daemon: DaemonSeen,
    hosts: Iterable[HostSeen],
    paused: Pause | None,
    *,
    several: bool,
) -> None:
    if options.json:
        around = {"daemon": to_json(daemon), "hosts": to_json(list(hosts)), "paused": to_json(paused)}
        profiles = [_as_json(one) for one in found]
        write_json({"state": state, "profiles": profiles, **around} if several else {**profiles[0], **around})
        return
    for one in found:
        if isinstance(one, _Unread):
            write_line(f"broken  profile {plain(one.profile)}  {plain(one.problem)}")
        else:
            tell_profile(one, _served_by(one))
        write_line("")
    tell_around(daemon, hosts, paused)


def _as_json(one: Status | _Unread) -> dict[str, Any]:
    if isinstance(one, _Unread):
        return {"state": one.state, "profile": one.profile, "problem": one.problem}
    return {**to_json(one), "served_by": _served_by(one)}


def _served_by(found: Status) -> str:
    return "embedded" if found.pid == os.getpid() else "daemon"
