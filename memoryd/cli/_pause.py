"""``memoryd pause`` and ``memoryd resume``: whether agent programs are recorded."""

from __future__ import annotations

import re
from typing import Any

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import when, write_json, write_line
from memoryd.core import from_micros

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Duration(click.ParamType[float]):
    """Seconds as ``90``, ``90s``, ``30m``, ``2h``, ``1d``."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d{1,7})([smhd]?)", str(value).strip())
        if match is None or not int(match[1]):
            self.fail(f"{value!r} is no duration: write 90s, 30m, 2h or 1d.", param, ctx)
        return float(int(match[1]) * _UNITS[match[2] or "s"])


@command(name="pause")
@click.option("--for", "seconds", type=Duration(), metavar="TIME", help="30m, 2h, 1d; without it until 'memoryd resume'.")
@pass_options
def pause(options: Options, seconds: float | None) -> None:
    """Stop recording what agent programs tell, in every profile of this home.  Recall goes on; what is said now stays unrecorded.

    \b
    Examples:
      memoryd pause
      memoryd pause --for 2h
    """
    from memoryd.hosts import pause as begin
    from memoryd.settings import resolve_home

    made = begin(resolve_home(options.home), seconds)
    until = None if made.until is None else from_micros(made.until)
    if options.json:
        write_json({"paused": True, "since": from_micros(made.since).isoformat(), "until": until and until.isoformat()})
    else:
        write_line(f"recording is paused until {when(until) or 'memoryd resume'}")


@command(name="resume")
@pass_options
def resume(options: Options) -> None:
    """Record again.

    \b
    Examples:
      memoryd resume
    """
    from memoryd.hosts import resume as end
    from memoryd.settings import resolve_home

    ended = end(resolve_home(options.home))
    if options.json:
        write_json({"paused": False, "was_paused": ended})
    else:
        write_line("recording goes on" if ended else "recording was not paused")
