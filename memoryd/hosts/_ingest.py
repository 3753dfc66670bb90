"""Taking in what hook programs spooled while nobody answered them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import attrs
import trio

from memoryd.errors import InvalidInput, MemorydError
from memoryd.hosts._answer import OpenProfile, answer_call
from memoryd.hosts._call import Call, understood
from memoryd.hosts._dialect import find_dialect
from memoryd.hosts._spool import claim_spool, has_spool
from memoryd.wire import HookCall

__all__ = ["ingest_hooks", "keep_hooks"]

SPOOL_S = 15.0


async def keep_hooks(home: Path, open_profile: OpenProfile, failed: Callable[[Exception], None]) -> None:
    """Take in what is spooled in ``home``, for ever; ``failed`` is told of an error, and it is tried again."""
    while True:
        try:
            if has_spool(home):
                await ingest_hooks(home, open_profile)
        except (OSError, MemorydError) as error:
            failed(error)
        await trio.sleep(SPOOL_S)


async def ingest_hooks(home: Path, open_profile: OpenProfile) -> int:
    """Take in what is spooled in ``home``; how many calls that were.

    What cannot be recorded now is spooled again.  Safe in several processes at once.
    """
    count = 0
    for file in await trio.to_thread.run_sync(lambda: list(claim_spool(home))):
        with closing(file):
            for look in (file.calls, file.finish):
                calls = await trio.to_thread.run_sync(look)
                for call in _worth([_here(call, home) for call in calls]):
                    with suppress(MemorydError):
                        await answer_call(call, open_profile)
                count += len(calls)
    return count


def _here(call: HookCall, home: Path) -> Call | None:
    """``call`` for the home in whose spool it was; None where no dialect knows its host."""
    with suppress(InvalidInput):
        return understood(attrs.evolve(call, environment={**call.environment, "MEMORYD_HOME": str(home)}), find_dialect(call.host))
    return None


def _worth(calls: Sequence[Call | None]) -> Iterator[Call]:
    """Those that still say something: nobody waits for a recall any more, and the last call of a session covers those before it,
    but for where it began, was cut, or ended."""
    told = [call for call in calls if call is not None and call.heard.kind not in ("gate", "prompt") and call.heard.why != "compact"]
    last = {_thread(call): call for call in told}
    for call in told:
        if call is last[_thread(call)] or call.heard.kind in ("start", "end", "compacted"):
            yield call


def _thread(call: Call) -> tuple[str, ...]:
    return call.profile, call.user, call.host, call.heard.session, call.heard.transcript or "", call.heard.agent
