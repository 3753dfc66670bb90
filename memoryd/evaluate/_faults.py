"""What a backend does on a bad day: repeats, restarts, cancelled calls, and disks that fail where it keeps files here."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import trio

from memoryd.core import Entry
from memoryd.errors import MemorydError
from memoryd.evaluate._trial import USER, Stage, Trial, Unapplied
from memoryd.store.faulty import Fault, FaultyVFS

__all__ = ["Broken", "DoesNotApply", "reliability", "scenarios"]

Scenario: TypeAlias = Callable[[Stage, str], Awaitable[None]]
PASSED, FAILED = "passed", "failed"
_TRIES = 20
_PAUSE = 0.1


class Broken(Exception):
    """A backend did not keep what it had to keep."""


class DoesNotApply(Exception):
    """The fault never happened: the backend has no such part."""


async def reliability(stage: Stage, name: str) -> dict[str, Any]:
    """``{"passed": n, "failed": n, "faults": {scenario: "passed" | "does not apply" | "failed: why"}}``."""
    faults = {title: await _outcome(scenario(stage, name)) for title, scenario in scenarios().items()}
    passed = sum(outcome == PASSED for outcome in faults.values())
    failed = sum(outcome.startswith(FAILED) for outcome in faults.values())
    return {"passed": passed, "failed": failed, "faults": faults}


async def _outcome(scenario: Awaitable[None]) -> str:
    try:
        await scenario
    except DoesNotApply:
        return "does not apply"
    except (Broken, Unapplied, MemorydError) as error:
        return f"{FAILED}: {error}"
    except Exception as error:  # noqa: BLE001 - a stranger's code fails in any way it likes; its message may hold anything
        return f"{FAILED}: {type(error).__name__}"
    return PASSED


def scenarios() -> Mapping[str, Scenario]:
    """Every scenario by name: each raises :class:`Broken`, :class:`DoesNotApply`, or whatever the backend let escape."""
    disks = {
        "disk full while writing": Fault("write", "ENOSPC", lasting=True),
        "write error": Fault("write", "EIO", lasting=True),
        "short write": Fault("write", "short"),
        "read error": Fault("read", "EIO", lasting=True),
        "sync error": Fault("sync", "EIO", lasting=True),
    }
    return {
        "delivered twice": _delivered_twice,
        "kept over a restart": _kept_over_a_restart,
        "cancelled, then delivered": _cancelled,
        **{name: partial(_bad_disk, fault) for name, fault in disks.items()},
    }


async def _delivered_twice(stage: Stage, name: str) -> None:
    async with Trial(stage, name, "twice").opened() as trial:
        entries = await trial.tell(trial.write("a", "first"), trial.write("b", "second"))
        await _deliver(trial, entries)
        await _expect(trial, {"a": "first", "b": "second"})


async def _kept_over_a_restart(stage: Stage, name: str) -> None:
    async with Trial(stage, name, "restart").opened() as trial:
        await trial.tell(trial.write("a", "first"))
        await trial.restart()
        await _expect(trial, {"a": "first"})
        await trial.tell(trial.write("a", "second"))
        await _expect(trial, {"a": "second"})


async def _cancelled(stage: Stage, name: str) -> None:
    """A call that was cancelled on its way may have arrived, so that it is delivered again."""
    async with Trial(stage, name, "cancelled").opened() as trial:
        entries = trial.entries([trial.write("a", "first"), trial.write("b", "second")])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trial.give, entries)
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        await _deliver(trial, entries)
        await _expect(trial, {"a": "first", "b": "second"})


async def _bad_disk(fault: Fault, stage: Stage, name: str) -> None:
    """While the disk fails, a typed error or an outcome; once it is well again, everything is there."""
    with FaultyVFS(f"memoryd-evaluate-{secrets.token_hex(4)}") as disk:
        async with Trial(stage, name, secrets.token_hex(4), vfs=disk.name).opened() as trial:
            await trial.tell(trial.write("a", "first"))
            entries = trial.entries([trial.write("b", "second")])
            disk.arm(fault)
            with suppress(MemorydError):
                await trial.give(entries)
                await trial.backend.retrieve(USER, "a")
            disk.heal()
            if not disk.fired:
                raise DoesNotApply
            await _deliver(trial, entries)
            await trial.restart()
            await _expect(trial, {"a": "first", "b": "second"})


async def _deliver(trial: Trial, entries: Sequence[Entry]) -> None:
    """Deliver until every outcome is *ok*, as the log does."""
    said = "error"
    for _ in range(_TRIES):
        with suppress(MemorydError):
            outcomes = {outcome.kind for outcome in await trial.give(entries)}
            if outcomes <= {"ok"}:
                return
            said = ", ".join(sorted(outcomes))
        await trio.sleep(_PAUSE)
    raise Broken(f"not applied after {_TRIES} deliveries: {said}")


async def _expect(trial: Trial, memories: Mapping[str, str]) -> None:
    """Exactly these are there, once it had time to show them."""
    found: dict[str, str | None] = {}
    for _ in range(_TRIES):
        keys = await trial.backend.list_keys(USER)
        found = {key: memory.value if (memory := await trial.backend.retrieve(USER, key)) else None for key in keys}
        if found == memories and len(keys) == len(memories):
            return
        await trio.sleep(_PAUSE)
    raise Broken(f"expected {len(memories)} memories as they were written, found {len(found)}")
