"""``memoryd checkpoint``: create, list, show, restore, read, verify."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memoryd.cli._group import Options, command, pass_options, shared
from memoryd.cli._output import busy, missing, plain, table, to_json, when, write_bytes, write_json, write_line
from memoryd.cli._session import innermost, loaded, opened_gate, run
from memoryd.core import row_text
from memoryd.errors import CheckpointBlocked, ConfigError, StoreError

if TYPE_CHECKING:
    from memoryd.core import CheckpointInfo, Receipt, Restored, Verification
    from memoryd.runtime import Runtime

_SESSION = "default"  # the same transcript without --session is the same checkpoint each time


@click.group(name="checkpoint")
@shared
def checkpoint() -> None:
    """Archive transcripts before a compaction, and get them back."""


# -- create ------------------------------------------------------------------------------------------------------------------


@command(name="create")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default="-")
@click.option("--host", metavar="NAME", default="cli", show_default=True, help="The program whose transcript it is.")
@click.option("--trigger", metavar="WORD", default="manual", show_default=True, help="Why now: manual, auto, ...")
@pass_options
def create(options: Options, file: Path, host: str, trigger: str) -> None:
    """Archive the messages of FILE (default: standard input): a JSON array, or JSONL, of OpenAI-style messages.

    The receipt is printed after the bytes were committed, read again and compared.  Whatever fails to archive ends in exit
    code 2 and a line on stderr that begins with BLOCKED_MISSING_PREREQUISITE.  Without --session the session is "default".

    \b
    Examples:
      memoryd checkpoint create --session s1 transcript.jsonl
      my-agent export | memoryd checkpoint create --session s1 --json
    """
    with busy("archiving"):
        receipt = _archive(options, file, host, trigger)
    if options.json:
        write_json(to_json(receipt))
    else:
        write_line(f"{receipt.verdict} {receipt.id} attempt {receipt.attempt}")
        write_line(f"rows {receipt.rows}, new {receipt.new_rows}, evidence {receipt.evidence}, degraded {receipt.degraded}")
        if receipt.warning:
            write_line(f"warning: {plain(receipt.warning)}")


def _archive(options: Options, file: Path, host: str, trigger: str) -> Receipt:
    """The receipt.  Whatever goes wrong on the way is the gate's to judge: it fails closed, unless it was told to let this pass."""
    from memoryd.checkpoint import read_source, read_transcript

    loaded(options)  # a wrong configuration is no refusal
    try:
        source = sys.stdin.buffer.read() if str(file) == "-" else read_source(file)
        rows = read_transcript(source)

        async def work(runtime: Runtime) -> Receipt:
            return await runtime.checkpoint(rows, host=host, trigger=trigger, source=source)

        return run(options, work, session=_SESSION, here=True)  # the gate needs the local disk only
    except (CheckpointBlocked, ConfigError):
        raise
    except Exception as error:  # noqa: BLE001 - what nobody thought of is a refusal too
        return _judged(options, innermost(error), host, trigger)


def _judged(options: Options, error: BaseException, host: str, trigger: str) -> Receipt:
    """What the gate says to a failure that never reached it: a release and the mode count here too."""
    if isinstance(error, CheckpointBlocked | ConfigError) or not isinstance(error, Exception):
        raise error
    session = options.session if options.session is not None else _SESSION
    try:
        with opened_gate(options) as gate:
            return gate.checkpoint(_failing(error), user=options.user_name, session=session, host=host, trigger=trigger)
    except StoreError as broken:
        return _without_profile(options, broken, session)


def _failing(error: Exception) -> Iterator[object]:
    yield from ()
    raise error


def _without_profile(options: Options, error: StoreError, session: str) -> Receipt:
    """There is not even a place for the gate's own notes: only the mode is left."""
    from memoryd.checkpoint import gate_mode, refusal
    from memoryd.core import Receipt

    mode, _ = gate_mode(loaded(options).config.gate.mode, os.environ)
    if mode == "block":
        raise refusal(error, session) from error
    return Receipt("", 0, "off" if mode == "off" else "warned", session, warning=f"not archived: {error}")


# -- list and show -----------------------------------------------------------------------------------------------------------


@command(name="list")
@click.option("--limit", type=click.IntRange(min=0), default=100, show_default=True, help="Checkpoints at most.")
@pass_options
def list_checkpoints(options: Options, limit: int) -> None:
    """List the checkpoints of the user, newest first: of all sessions, or of --session.

    \b
    Examples:
      memoryd checkpoint list
      memoryd checkpoint list --session s1 --json
    """

    async def work(runtime: Runtime) -> list[CheckpointInfo]:
        return await runtime.checkpoints(options.session, limit)

    found = run(options, work)
    if options.json:
        write_json({"checkpoints": to_json(found), "count": len(found)})
        return
    rows = (
        (c.id, c.session, c.attempts[-1].rows if c.attempts else 0, len(c.attempts), when(c.attempts[-1].at) if c.attempts else "")
        for c in found
    )
    table(("id", "session", "rows", "attempts", "last"), rows)


@command(name="show")
@click.argument("id")
@pass_options
def show(options: Options, id: str) -> int:
    """What is known of a checkpoint: its session, how many rows, and each attempt.

    \b
    Examples:
      memoryd checkpoint show 5f1c0e6a --json
    """

    async def work(runtime: Runtime) -> CheckpointInfo:
        return await runtime.checkpoint_info(id)

    found = run(options, work)
    if options.json:
        write_json(to_json(found))
        return 0
    write_line(f"{found.id}  session {plain(found.session)}  evidence {found.count}")
    attempts = ((a.attempt, when(a.at), a.host, a.trigger, a.verdict, a.rows, a.new_rows, a.warning) for a in found.attempts)
    table(("attempt", "at", "host", "trigger", "verdict", "rows", "new", "warning"), attempts)
    return 0


# -- restore and verify ------------------------------------------------------------------------------------------------------


@command(name="restore")
@click.argument("id")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="An older attempt [the newest].")
@click.option("--full", is_flag=True, help="The source's own bytes, where the host gave a transcript.")
@pass_options
def restore(options: Options, id: str, attempt: int | None, full: bool) -> int:
    """Print the messages of a checkpoint in order: one JSON value a line, or with --json {"messages": [...]}.

    A forgotten row is null.

    \b
    Examples:
      memoryd checkpoint restore 5f1c0e6a > messages.jsonl
      memoryd checkpoint restore 5f1c0e6a --json
      memoryd checkpoint restore 5f1c0e6a --full > transcript.jsonl
    """

    async def work(runtime: Runtime) -> Restored:
        return await runtime.restore(id, attempt=attempt, full=full)

    restored = run(options, work)
    if full:
        if restored.source is None:
            return missing(options.json, f"checkpoint {id!r} has no transcript of its host; leave out --full for its rows")
        write_bytes(restored.source)
    else:
        _print_rows(options, restored)
    return 0


def _print_rows(options: Options, restored: Restored) -> None:
    # the rows are canonical JSON already: what was archived is printed, not decoded and encoded again
    rows = [b"null" if row is None else row for row in restored.rows]
    if options.json:
        write_bytes(b'{"messages": [' + b", ".join(rows) + b'], "erased": ' + str(restored.erased).encode() + b"}\n")
    else:
        write_bytes(b"".join(row + b"\n" for row in rows))


@command(name="read")
@click.argument("id")
@click.option("--range", "wanted", metavar="A:B", default="1:", show_default=True, help="Which, counted from 1; -20: for the last 20.")
@pass_options
def read(options: Options, id: str, wanted: str) -> int:
    """Print messages of a checkpoint word for word, each under its number and role; a forgotten one says so.

    \b
    Examples:
      memoryd checkpoint read 5f1c0e6a --range -20:
      memoryd checkpoint read 5f1c0e6a --range 12:18 --json
    """

    async def work(runtime: Runtime) -> Restored:
        return await runtime.restore(id)

    span = _span(wanted)
    rows = run(options, work).rows
    first, last, _ = slice(span[0], span[1]).indices(len(rows))
    chosen = [(number + 1, None if rows[number] is None else json.loads(rows[number] or b"")) for number in range(first, last)]
    if options.json:
        write_json({"messages": [{"number": number, "message": message} for number, message in chosen], "of": len(rows)})
        return 0
    for number, message in chosen:
        write_line(f"--- {number} {_role(message)}")
        write_line(plain(_said(message)))
    return 0


def _span(wanted: str) -> tuple[int | None, int | None]:
    """``A:B`` counted from 1, both included, as Python counts."""
    first, colon, last = wanted.partition(":")
    try:
        begin, end = int(first or 1), int(last) if last else None
    except ValueError:
        raise click.BadParameter("expected A:B, such as 12:18, 12: or -20:", param_hint="--range") from None
    if not colon:
        end = begin
    stop = None if end in (None, -1) else end + 1 if end < 0 else end
    return (begin if begin < 0 else max(0, begin - 1)), stop


def _role(message: object) -> str:
    if isinstance(message, dict) and message.get("is_summary"):
        return "summary"
    return plain(str(message.get("role") or "row")) if isinstance(message, dict) else "forgotten" if message is None else "row"


def _said(message: object) -> str:
    if not isinstance(message, dict):
        return message if isinstance(message, str) else ""
    tools = message.get("tools")
    called = [f"({', '.join(map(str, tools))})"] if isinstance(tools, list) and tools else []
    return "\n".join(filter(None, [row_text(message.get("content")), *called]))


@command(name="verify")
@click.argument("id", required=False)
@pass_options
def verify(options: Options, id: str | None) -> int:
    """Compute every digest of the archive again, or of one checkpoint; exit code 1 where bytes changed.

    \b
    Examples:
      memoryd checkpoint verify
      memoryd checkpoint verify 5f1c0e6a --json
    """

    async def work(runtime: Runtime) -> Verification:
        return await runtime.verify(id)

    with busy("verifying"):
        found = run(options, work)
    if options.json:
        write_json({"ok": found.ok, **to_json(found)})
    else:
        write_line(f"{'ok' if found.ok else 'CORRUPT'}: checkpoints {found.checkpoints}, rows {found.rows}, erased {found.erased}")
        for corrupt in found.corrupt:
            write_line(f"corrupt {corrupt}")
    return 0 if found.ok else 1


for sub in (create, list_checkpoints, show, restore, read, verify):
    checkpoint.add_command(sub)
