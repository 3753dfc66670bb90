"""``memoryd store``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import to_json, write_json, write_line
from memoryd.cli._session import run

if TYPE_CHECKING:
    from memoryd.core import Stored
    from memoryd.runtime import Runtime


@command(name="store")
@click.argument("key")
@click.argument("value", required=False)
@click.option("--type", "kind", metavar="TYPE", help="What kind of memory [preference].")
@click.option("--metadata", metavar="JSON", help="A JSON object kept beside the value.")
@pass_options
def store(options: Options, key: str, value: str | None, kind: str | None, metadata: str | None) -> int:
    """Store VALUE under KEY for the user, replacing an earlier value; without VALUE, standard input is stored.

    \b
    Examples:
      memoryd store city Oslo
      memoryd store --type fact --metadata '{"source": "form"}' birthday 1990-04-01
      memoryd store notes < notes.txt
    """
    text = value if value is not None else stdin_text("VALUE")
    extra = _metadata(metadata, kind)

    async def work(runtime: Runtime) -> Stored:
        return await runtime.store(key, text, extra)

    return show_stored(options, run(options, work))


def stdin_text(argument: str) -> str:
    """All of standard input as text.  None at all is more often a variable that was not set than an empty text that was meant."""
    data = stdin_bytes(argument)
    if not data:
        raise click.UsageError(f"Missing argument '{argument}', and standard input is empty; '' as {argument} is an empty text.")
    return data.decode("utf-8", "surrogateescape")


def stdin_bytes(argument: str) -> bytes:
    """All of standard input.  Waiting for a person to type it would look like a hang: that is a usage error."""
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError(f"Missing argument '{argument}' (or text on standard input).")
    return sys.stdin.buffer.read()


def show_stored(options: Options, stored: Stored) -> int:
    """Print what became of a write; 1 where it is not on disk yet."""
    accepted = stored.accepted
    if options.json:
        write_json(to_json(stored))
    else:
        write_line(f"{accepted.state} {accepted.event_id}" + (f" ({accepted.reason})" if accepted.reason else ""))
    return 1 if accepted.state in ("held", "refused") else 0


def _metadata(text: str | None, kind: str | None) -> dict[str, Any]:
    try:
        found = {} if text is None else json.loads(text)
    except (ValueError, RecursionError):
        raise click.BadParameter("expected a JSON object", param_hint="--metadata") from None
    if not isinstance(found, dict):
        raise click.BadParameter("expected a JSON object", param_hint="--metadata")
    return found if kind is None else {**found, "type": kind}
