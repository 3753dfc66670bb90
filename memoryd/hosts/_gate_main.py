"""``python -m memoryd _gate HOST EVENT``: the gate in this process, for a hook program that finds no daemon.  No trio, no click.

Standard input is a hook frame, answered with one, or a host's payload as it is, answered as the host wants it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from memoryd.errors import InvalidInput, MemorydError, ProtocolError
from memoryd.hosts._call import understood
from memoryd.hosts._dialect import find_dialect, refused_blindly
from memoryd.hosts._gate import DEADLINE_S, answer_gate
from memoryd.hosts._spool import spool_allowed
from memoryd.wire import HookCall, HookCallReader, HookReply

__all__ = ["answer_in_process", "gate_main", "spool_main"]


def gate_main(arguments: Sequence[str]) -> int:
    """Answers one gate event; the exit code is the host's, or 0 where a frame was answered.  ``arguments``: host, event[, seconds]."""
    host, event = (*arguments, "", "")[:2]
    seconds = float(arguments[2]) if len(arguments) > 2 else DEADLINE_S
    data = sys.stdin.buffer.read()
    if not data.startswith(b"H"):
        reply = answer_in_process(HookCall(host, event, _cwd(), dict(os.environ), data), seconds)
        sys.stdout.buffer.write(reply.stdout)
        sys.stderr.buffer.write(reply.stderr)
        return reply.code
    sys.stdout.buffer.write(_answer_frame(data, host, event, seconds).encode())
    return 0


def _answer_frame(data: bytes, host: str, event: str, seconds: float) -> HookReply:
    try:
        call = HookCallReader().receive(data)
    except ProtocolError as error:
        call, problem = None, str(error)
    else:
        problem = "the hook frame is cut off"
    if call is None:
        return _refused(host, event, problem)
    return answer_in_process(call, seconds)


def answer_in_process(call: HookCall, seconds: float = DEADLINE_S) -> HookReply:
    """The answer to a gate event.  Blocking; never raises."""
    try:
        dialect = find_dialect(call.host)
    except InvalidInput as error:
        return refused_blindly(call.event, f"memoryd: {error}")
    return answer_gate(understood(call, dialect), seconds)


def _refused(host: str, event: str, problem: str) -> HookReply:
    try:
        return find_dialect(host).refuse(event, f"memoryd: {problem}")
    except InvalidInput:
        return refused_blindly(event, f"memoryd: {problem}")


def spool_main() -> int:
    """``python -m memoryd _spool``: spools the frame on standard input, where the settings let it be written."""
    call = HookCallReader().receive(sys.stdin.buffer.read())
    if call is not None:
        with suppress(OSError, MemorydError):
            spool_allowed(understood(call, find_dialect(call.host)))
    return 0


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""
