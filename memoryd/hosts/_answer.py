"""What the daemon does for a hook program: one call in, one reply out, inside the hook's own patience."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import TypeAlias

import msgspec
import trio

from memoryd.core import fence_marker, scope
from memoryd.errors import CheckpointNotFound, ConfigError, InvalidInput, MemorydError
from memoryd.hosts._call import Call, size_of, understood, why_unrecorded_now
from memoryd.hosts._capsule import capsule
from memoryd.hosts._dialect import SILENT, find_dialect, refused_blindly
from memoryd.hosts._gate import answer_gate, archive_quietly
from memoryd.hosts._hide import hide
from memoryd.hosts._record import NotRecorded, note_session, record_others, record_turns
from memoryd.hosts._shelves import Shelves
from memoryd.hosts._spool import spool_allowed
from memoryd.hosts._state import States
from memoryd.hosts._summary import summary_in
from memoryd.runtime import Runtime
from memoryd.store import open_profile
from memoryd.wire import HookCall, HookReply

__all__ = ["OpenProfile", "answer_call", "answer_hook"]

OpenProfile: TypeAlias = Callable[[Path | None, str], AbstractAsyncContextManager[Runtime]]
"""``open_profile(home, profile)``: the runtime for the length of a block; home None is that of the process."""

GATE_S = 13.0  # the hook program waits 14, then runs a gate of its own
PROMPT_S = 0.12
MISSED = "missed-compaction"  # the trigger in the receipt
LARGEST = 256 << 20  # bytes of a transcript: the gate holds all of it in memory
_SHELVES = Shelves()  # of this process: whoever answers hooks does so for all of its life


async def answer_hook(call: HookCall, open_profile: OpenProfile) -> HookReply:
    """The answer for the host.  A gate is decided with the local disk alone; what else fails is spooled, and the reply is silent.

    Raises :class:`~memoryd.errors.InvalidInput` for a gate that is none of this process's work: the hook program then asks one of its own.
    """
    try:
        dialect = find_dialect(call.host)
    except InvalidInput as error:
        return refused_blindly(call.event, f"memoryd: {error}")
    return await answer_call(understood(call, dialect), open_profile)


async def answer_call(call: Call, open_profile: OpenProfile) -> HookReply:
    """As :func:`answer_hook`, for a call that is understood."""
    if call.heard.kind == "gate":
        if size_of(call.heard.transcript or "") > LARGEST:
            raise InvalidInput("transcript", "is too large for the memory that others share; the gate of the hook's own takes it")
        return await trio.to_thread.run_sync(answer_gate, call, _SHELVES, GATE_S)
    if call.heard.problem or call.heard.kind == "other":
        return SILENT
    try:
        async with open_profile(call.home, call.profile) as runtime:
            return await _tell(runtime, call)
    except (MemorydError, NotRecorded) as error:
        if not isinstance(error, InvalidInput):  # what is wrong with the file will not be right later
            await trio.to_thread.run_sync(_put_back, call)
        return SILENT


def _put_back(call: Call) -> None:
    with suppress(OSError, MemorydError):
        spool_allowed(call)


async def _tell(runtime: Runtime, call: Call) -> HookReply:
    heard = call.heard
    match heard.kind:
        case "prompt":
            reply = await _recall(runtime, call)
            await trio.to_thread.run_sync(_note, runtime, call)
            return reply
        case _ if await trio.to_thread.run_sync(why_unrecorded_now, call, runtime.home):
            await trio.to_thread.run_sync(hide, call, runtime.home)
        case "start" if heard.why == "compact":
            return await _rebrief(runtime, call)
        case "start":
            await trio.to_thread.run_sync(_begin, runtime, call)
        case _:
            await trio.to_thread.run_sync(_go_on, runtime, call)
    return SILENT


def _go_on(runtime: Runtime, call: Call) -> None:
    """Record what is new; archive where the context was cut, or is about to be thrown away."""
    kind = call.heard.kind
    if kind == "compacted":
        archive_quietly(call, runtime.home, _SHELVES, call.event)
    missed = record_turns(runtime, call, settled=kind != "compacted")
    if kind == "end" or missed:
        archive_quietly(call, runtime.home, _SHELVES, MISSED if missed else call.event)


def _note(runtime: Runtime, call: Call) -> None:
    with suppress(ConfigError):
        if why_unrecorded_now(call, runtime.home):
            hide(call, runtime.home)
        else:
            note_session(runtime, call)


def _begin(runtime: Runtime, call: Call) -> None:
    """A session begins or goes on: this one's transcript may not be there yet, and those of others may have more than was told."""
    note_session(runtime, call)
    with suppress(InvalidInput):
        _go_on(runtime, call)
    record_others(runtime, call)


async def _recall(runtime: Runtime, call: Call) -> HookReply:
    if not call.heard.prompt.strip():
        return SILENT
    text = ""
    with trio.move_on_after(PROMPT_S), scope(user=call.user, session=call.heard.session, platform=call.host):
        text = (await runtime.prefetch(call.heard.prompt)).text
    return call.dialect.inject(call.event, text) if text else SILENT


async def _rebrief(runtime: Runtime, call: Call) -> HookReply:
    profile = await trio.to_thread.run_sync(open_profile, runtime.home, runtime.profile)
    saved = States(profile, call.host).saved(call.heard.session)
    with scope(user=call.user, session=call.heard.session, platform=call.host):
        id = saved.checkpoint
        if not id:
            found = await runtime.checkpoints(call.heard.session, 1)
            id = found[0].id if found else ""
        if not id:
            return SILENT
        try:
            restored = await runtime.restore(id)
        except CheckpointNotFound:
            return SILENT
    summary = await trio.to_thread.run_sync(summary_in, call)
    marker, budget = fence_marker(profile.key), runtime.config.recall.budget_chars
    rows = [msgspec.json.decode(row) if row is not None else None for row in restored.rows]
    text = capsule(rows, id, marker=marker, budget=budget, summary=summary)
    return call.dialect.inject(call.event, text) if text else SILENT
