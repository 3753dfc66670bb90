"""What the daemon does for a hook program: one call in, one reply out, inside the hook's own patience."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing, suppress
from pathlib import Path
from typing import TypeAlias

import attrs
import msgspec
import trio

from memoryd.core import fence_marker, scope
from memoryd.errors import CheckpointNotFound, InvalidInput, MemorydError
from memoryd.hosts._call import Call, understood, why_unrecorded
from memoryd.hosts._capsule import capsule
from memoryd.hosts._dialect import SILENT, find_dialect, refused_blindly
from memoryd.hosts._gate import answer_gate, archive_quietly
from memoryd.hosts._record import NotRecorded, record_turns
from memoryd.hosts._spool import claim_spool, has_spool, spool_allowed
from memoryd.hosts._state import States
from memoryd.hosts._summary import summary_in
from memoryd.runtime import Runtime
from memoryd.store import open_profile
from memoryd.wire import HookCall, HookReply

__all__ = ["OpenProfile", "answer_hook", "ingest_hooks", "keep_hooks"]

OpenProfile: TypeAlias = Callable[[Path | None, str], AbstractAsyncContextManager[Runtime]]
"""``open_profile(home, profile)``: the runtime for the length of a block; home None is that of the process."""

GATE_S = 13.0  # the hook program waits 14, then runs a gate of its own
PROMPT_S = 0.12
SPOOL_S = 15.0


async def answer_hook(call: HookCall, open_profile: OpenProfile) -> HookReply:
    """The answer for the host.  A gate is decided with the local disk alone; what else fails is spooled, and the reply is silent."""
    try:
        dialect = find_dialect(call.host)
    except InvalidInput as error:
        return refused_blindly(call.event, f"memoryd: {error}")
    heard = understood(call, dialect)
    if heard.heard.kind == "gate":
        return await trio.to_thread.run_sync(answer_gate, heard, GATE_S)
    if heard.heard.problem or heard.heard.kind == "other":
        return SILENT
    try:
        async with open_profile(heard.home, heard.profile) as runtime:
            return await _tell(runtime, heard)
    except (MemorydError, NotRecorded) as error:
        if not isinstance(error, InvalidInput):  # what is wrong with the file will not be right later
            await trio.to_thread.run_sync(_put_back, heard, call)
        return SILENT


def _put_back(heard: Call, call: HookCall) -> None:
    with suppress(OSError, MemorydError):
        spool_allowed(heard, call)


async def _tell(runtime: Runtime, call: Call) -> HookReply:
    heard = call.heard
    match heard.kind:
        case "prompt":
            return await _recall(runtime, call)
        case _ if await trio.to_thread.run_sync(why_unrecorded, call, runtime.config, runtime.home):
            return SILENT
        case "start" if heard.why == "compact":
            return await _rebrief(runtime, call)
        case "compacted":
            await trio.to_thread.run_sync(archive_quietly, call, runtime.home)
            await trio.to_thread.run_sync(lambda: record_turns(runtime, call, settled=False))
        case "end":
            await trio.to_thread.run_sync(lambda: record_turns(runtime, call, settled=True))
            await trio.to_thread.run_sync(archive_quietly, call, runtime.home)
        case _:
            await trio.to_thread.run_sync(lambda: record_turns(runtime, call, settled=True))
    return SILENT


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


async def ingest_hooks(home: Path, open_profile: OpenProfile) -> int:
    """Take in what hook programs spooled in ``home`` while nobody answered; how many calls that were.

    What cannot be recorded now is spooled again.  Safe in several processes at once.
    """
    count = 0
    for file in await trio.to_thread.run_sync(lambda: list(claim_spool(home))):
        with closing(file):
            calls = await trio.to_thread.run_sync(file.calls)
            for call in calls:
                await _take_in(call, home, open_profile)
            late = await trio.to_thread.run_sync(file.finish)
            for call in late:
                await _take_in(call, home, open_profile)
            count += len(calls) + len(late)
    return count


async def keep_hooks(home: Path, open_profile: OpenProfile, failed: Callable[[Exception], None]) -> None:
    """Take in what is spooled in ``home``, for ever; ``failed`` is told of an error, and it is tried again."""
    while True:
        try:
            if has_spool(home):
                await ingest_hooks(home, open_profile)
        except (OSError, MemorydError) as error:
            failed(error)
        await trio.sleep(SPOOL_S)


async def _take_in(call: HookCall, home: Path, open_profile: OpenProfile) -> None:
    here = attrs.evolve(call, environment={**call.environment, "MEMORYD_HOME": str(home)})
    with suppress(MemorydError):
        await answer_hook(here, open_profile)
