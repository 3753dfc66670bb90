"""``memoryd tool``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from memoryd.cli._group import Options, command, pass_options
from memoryd.cli._output import write_json
from memoryd.cli._session import loaded
from memoryd.cli._store import stdin_bytes


@command(name="tool")
@click.argument("call", metavar="[CALL.json]", required=False)
@pass_options
def tool(options: Options, call: str | None) -> int:
    """One call of the tool memory_backend, as a model makes it: a JSON object from a file, or from standard input.

    The answer is JSON; exit code 0 where it says success, else 1.  --user (or $MEMORYD_USER) binds a user, as a host does.

    \b
    Examples:
      memoryd tool call.json
      echo '{"action": "store", "key": "city", "value": "Oslo"}' | memoryd tool
      echo '{"action": "info"}' | memoryd tool --user ada
    """
    data = Path(call).read_bytes() if call is not None and call != "-" else stdin_bytes("CALL.json")
    answer = _answer(options, data)
    write_json(answer)
    return 0 if answer["success"] else 1


def _answer(options: Options, data: bytes) -> dict[str, Any]:
    from memoryd import tool as memory_tool

    try:
        arguments = json.loads(data)
    except (ValueError, RecursionError):
        return memory_tool.failed("the call is not JSON")
    return _asked(options, arguments)


def _asked(options: Options, arguments: object) -> dict[str, Any]:
    from memoryd import tool as memory_tool
    from memoryd.blocking import Memory
    from memoryd.core import scope

    found = loaded(options)
    bound = options.user if options.user is not None else os.environ.get("MEMORYD_USER") or None
    with Memory(found.home, found.profile, found.config) as memory, scope(user=bound, session=options.session):
        return memory_tool.call(arguments, memory, default_user=options.user_name)
