"""``memoryd gate``: status, release."""

from __future__ import annotations

import click

from memoryd.cli._group import Options, command, pass_options, shared
from memoryd.cli._output import plain, table, to_json, when, write_json, write_line
from memoryd.cli._session import opened_gate
from memoryd.core import check_name, from_micros


@click.group(name="gate")
@shared
def gate() -> None:
    """The gate before a compaction: its state, and a way past it."""


@command(name="status")
@pass_options
def status(options: Options) -> None:
    """What a checkpoint would meet now: the mode, who decided it, where the archive is, releases, refusals, the last decisions.

    \b
    Examples:
      memoryd gate status
      memoryd gate status --json
    """
    with opened_gate(options) as gate:
        found = to_json(gate.status())
    if options.json:
        write_json(found)
        return
    for name in ("mode", "decided_by", "archive", "fallback"):
        write_line(f"{name}: {plain(found[name]) or 'none'}")
    for session, until in found["released"].items():
        write_line(f"released: {plain(session)} ({until})")
    reasons = {r["session"]: r["reason"] for r in found["receipts"] if r["verdict"] == "refused"}
    for session, count in found["refusals"].items():
        write_line(f"refused: {plain(session)}, {count} in a row" + (f": {plain(reasons[session])}" if session in reasons else ""))
    rows = ((when(from_micros(r["at"])), r["session"], r["host"], r["verdict"], r["cause"]) for r in found["receipts"])
    table(("at", "session", "host", "verdict", "cause"), rows)


@command(name="release")
@click.argument("name", metavar="SESSION")
@click.option("--once", is_flag=True, help="For the next compaction of the session only.")
@click.option("--clear", is_flag=True, help="End a release.")
@pass_options
def release(options: Options, name: str, once: bool, clear: bool) -> None:
    """Let compactions of SESSION go on where their transcript cannot be archived.  What is then cut is lost.

    \b
    Examples:
      memoryd gate release s1 --once
      memoryd gate release s1 --clear
    """
    check_name("session", name)
    with opened_gate(options) as gate:
        if clear:
            gate.clear(name)
        else:
            gate.release(name, once=once)
    if options.json:
        write_json({"session": name, "once": once, "released": not clear})
    elif clear:
        write_line(f"{plain(name)} is gated again")
    else:
        write_line(f"released {plain(name)}: " + ("its next compaction passes" if once else "its compactions pass until --clear"))


for sub in (status, release):
    gate.add_command(sub)
