"""``memoryd turn``."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._lines import Document, read_documents
from memoryd.cli._output import error_object, write_json
from memoryd.cli._session import run
from memoryd.cli._types import SECONDS
from memoryd.errors import InvalidInput, JournalUnavailable, MemorydError

if TYPE_CHECKING:
    from memoryd.core import Accepted
    from memoryd.runtime import Runtime

_KEYS = ("user", "assistant", "turn_id", "created_at", "session", "messages")


@command(name="turn")
@click.option("--wait", type=SECONDS, help="Seconds to wait for the log's lock [deadlines.flush].")
@pass_options
def turn(options: Options, wait: float | None) -> int:
    """Record turns from standard input: JSON objects, one a line, or one JSON document (an object or an array).

    \b
    Keys of an object:
      user, assistant   the texts; one may be left out or empty
      turn_id           your key: the same one again in the same session records nothing new
      created_at        ISO 8601 or seconds since the epoch [now]
      session           instead of --session
      messages          the host's message list; only ids and kinds of parts of the last turn are taken

    For each, one line of JSON on stdout as soon as it is on disk; a bad one gives a line with "line" and "error" and the
    next goes on.  Exit code 1 where one was bad, held or refused.  Without --session the turns are one new session.

    \b
    Examples:
      echo '{"user": "I live in Oslo", "assistant": "Noted."}' | memoryd turn --session s1
      memoryd turn --session import-1 < turns.jsonl
    """
    session = options.session if options.session is not None else secrets.token_hex(8)

    async def work(runtime: Runtime) -> bool:
        recorder = Recorder(runtime, session, runtime.config.deadlines.flush if wait is None else wait)
        good = True
        async for document in read_documents(0):
            good = await recorder.record(document) and good
        return good

    return 0 if run(options, work, session=session) else 1


@attrs.frozen(slots=True)
class Recorder:
    """Turns documents into turns, each answered by one line."""

    runtime: Runtime
    session: str
    wait: float

    async def record(self, document: Document) -> bool:
        """One document: a turn, or an array of turns.  False where one of them was not recorded."""
        if document.problem:
            return self._bad(document.line, InvalidInput("line", document.problem))
        found = document.value if isinstance(document.value, list) else [document.value]
        return all([await self._one(document.line, item) for item in found])

    async def _one(self, line: int, item: Any) -> bool:
        try:
            row = _checked(item)
            accepted, session = self._accept(row)
            accepted = await self.runtime.settled(accepted, self.wait)
        except MemorydError as error:
            return self._bad(line, error)
        answer = {"state": accepted.state, "seq": accepted.seq, "event_id": accepted.event_id, "turn_id": row.get("turn_id")}
        write_json({**answer, "session": session, "reason": accepted.reason})
        return accepted.state != "held"

    def _accept(self, row: Mapping[str, Any]) -> tuple[Accepted, str]:
        from memoryd.core import scope

        session = row.get("session") or self.session
        with scope(session=session):
            accepted = self.runtime.sync_turn(
                row.get("user") or "",
                row.get("assistant") or "",
                messages=row.get("messages"),
                turn_id=row.get("turn_id"),
                created_at=row.get("created_at"),
            )
        return accepted, session

    def _bad(self, line: int, error: MemorydError) -> bool:
        answer: dict[str, Any] = {"line": line, **error_object(error)}
        if isinstance(error, JournalUnavailable):
            answer |= {"state": "refused", "reason": error.reason}
        write_json(answer)
        return False


def _checked(item: Any) -> Mapping[str, Any]:
    """``item`` as an object with known keys; what the values may be is the runtime's to say."""
    if not isinstance(item, dict):
        raise InvalidInput("turn", f"expected an object, got {json.dumps(item)[:20] if not isinstance(item, str) else 'text'}")
    if unknown := [key for key in item if key not in _KEYS]:
        raise InvalidInput(str(unknown[0])[:80], f"unknown key; expected {', '.join(_KEYS)}")
    return item
