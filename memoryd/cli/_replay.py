"""``memoryd replay``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import attrs
import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import plain, progress, to_json, write_json, write_line
from memoryd.cli._session import loaded

if TYPE_CHECKING:
    from memoryd.runtime import Replayed


@command(name="replay")
@click.option("--to", metavar="NAME", required=True, help="The backend that gets the log; `memoryd backends` lists them.")
@click.option("--from-seq", type=click.IntRange(min=1), metavar="N", help="Begin at event N, not where the last replay stopped.")
@click.option("--dry-run", is_flag=True, help="Only say what would be sent: nobody is asked, nothing is changed.")
@click.option("--all-profiles", is_flag=True, help="Every profile of the home, one after another.")
@pass_options
def replay(options: Options, to: str, from_seq: int | None, dry_run: bool, all_profiles: bool) -> int:
    """Send the whole log of the profile, all users, to a backend: in order, each event under its own id.

    A replay that was interrupted or killed goes on where it stopped; a finished one sends what is new.  What was forgotten
    is sent as forgotten, without its words.  Exit code 1 where the backend cannot be reached, or refused events for good
    (`memoryd dead` lists them).

    \b
    Examples:
      memoryd replay --to honcho --dry-run
      memoryd replay --to honcho
      memoryd replay --to honcho --from-seq 1 --json
      memoryd replay --to honcho --all-profiles
    """
    from memoryd.maintain import profile_names

    names = profile_names(loaded(options).home) if all_profiles else [options.profile_name]
    done = {name: _one(options, name, to, from_seq, dry_run) for name in names}
    if options.json and all_profiles:
        write_json({"replays": [{"profile": name, **to_json(one)} for name, one in done.items()], "count": len(done)})
    elif options.json:
        write_json(to_json(done[options.profile_name]))
    else:
        for name, one in done.items():
            _print(f"profile {plain(name)}: " if all_profiles else "", one, dry_run)
    return 1 if any(one.refused for one in done.values()) else 0


def _one(options: Options, name: str, to: str, from_seq: int | None, dry_run: bool) -> Replayed:
    import trio

    from memoryd.runtime import replay as send

    found = loaded(attrs.evolve(options, profile=name))
    with progress(f"replay to {to}") as told:
        work = partial(send, found.home, found.profile, found.config, to.strip().lower(), from_seq=from_seq, dry_run=dry_run)
        return trio.run(partial(work, on_progress=told), restrict_keyboard_interrupt_to_checkpoints=True)


def _print(whose: str, done: Replayed, dry_run: bool) -> None:
    if dry_run:
        write_line(f"{whose}would send {done.sent} events to {plain(done.to)}, from {done.first} to {done.last}")
    else:
        refused = f"; refused {done.refused}" if done.refused else ""
        write_line(f"{whose}sent {done.sent} events to {plain(done.to)}, up to {done.last}{refused}")
