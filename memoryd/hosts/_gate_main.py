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
from memoryd.hosts._shelves import Shelves
from memoryd.hosts._spool import spool_allowed
from memoryd.wire import HookCall, HookCallReader, HookReply

__all__ = ["answer_in_process", "gate_main", "spool_main"]


def gate_main(arguments: Sequence[str]) -> int:
    """Answers one gate event; the exit code is the host's, or 0 where a frame was answered.  ``arguments``: host, event[, seconds]."""
    host, event = (*arguments, "", "")[:2]
    seconds = float(arguments[2]) if len(arguments) > 2 else DEADLINE_S
    data, shelves = sys.stdin.buffer.read(), Shelves()
    if not data.startswith(b"H"):
        reply = answer_in_process(HookCall(host, event, _cwd(), dict(os.environ), data), seconds, shelves)
        sys.stderr.buffer.write(reply.stderr)
        _hand_out(reply.stdout)
        return reply.code
    _hand_out(_answer_frame(data, host, event, seconds, shelves).encode())
    return 0


def _hand_out(answer: bytes) -> None:
    """The answer is out, and said to be all, before the archive is closed: closing folds its log back, which nobody need wait for."""
    sys.stdout.buffer.write(answer)
    sys.stdout.flush()
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _answer_frame(data: bytes, host: str, event: str, seconds: float, shelves: Shelves) -> HookReply:
    try:
        call = HookCallReader().receive(data)
    except ProtocolError as error:
        call, problem = None, str(error)
    else:
        problem = "the hook frame is cut off"
    if call is None:
        return _refused(host, event, problem)
    return answer_in_process(call, seconds, shelves)


def answer_in_process(call: HookCall, seconds: float, shelves: Shelves) -> HookReply:
    """The answer to a gate event.  Blocking; never raises."""
    try:
        dialect = find_dialect(call.host)
    except InvalidInput as error:
        return refused_blindly(call.event, f"memoryd: {error}")
    return answer_gate(understood(call, dialect), shelves, seconds)


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
