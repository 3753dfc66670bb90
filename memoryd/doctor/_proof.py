"""A real write and a real read: first in a home of its own on the same disk, then of each backend; neither leaves anything."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import trio

from memoryd.core import Backend, Config, DeliveryConfig, GateConfig, Health, LoggingConfig, scope
from memoryd.doctor._verdict import broken, doubtful, fine, remedy_of
from memoryd.errors import BackendError, MemorydError
from memoryd.hosts import Check
from memoryd.runtime import Runtime, backend_context, build_backend, find_backend, open_runtime, roles
from memoryd.store import ProfileStore, lock_holder

__all__ = ["healthy_backends", "write_and_read"]

_PREFIX = ".doctor-"
_ABANDONED = 3600.0
_ANSWER = 20.0  # seconds; loading an SDK on a busy machine is part of it
_SAID = "the word is heliotrope"
_ROWS = [{"role": "user", "content": _SAID}, {"role": "assistant", "content": "Noted."}]


async def write_and_read(home: Path, config: Config) -> Check:
    """Record, sync, recall, archive and restore, as a host would, beside the profiles of ``home``."""
    plain = attrs.evolve(
        config, backend="local", mirrors=(), gate=GateConfig(), delivery=DeliveryConfig(), logging=LoggingConfig(level="off")
    )
    try:
        with _scratch(home) as place:
            started = time.perf_counter()
            async with open_runtime(place, config=plain) as runtime:
                with scope(user="doctor", session="doctor"):
                    problem = await _try(runtime)
            took = (time.perf_counter() - started) * 1000
    except (MemorydError, OSError) as error:
        problem, took = str(error), 0.0
    if problem:
        return broken("write-and-read", problem, "see the checks of the disk; nothing is recorded until this works")
    return fine("write-and-read", f"recorded, synced, recalled, archived and restored in {took:.0f} ms")


async def _try(runtime: Runtime) -> str:
    """What did not come back, or an empty text."""
    runtime.sync_turn(_SAID, "Noted.")
    await runtime.flush()
    found = await runtime.recall("heliotrope")
    if not found or found[0].text != _SAID:
        return "a turn that was recorded is not recalled"
    receipt = await runtime.checkpoint(_ROWS)
    restored = await runtime.restore(receipt.id)
    if [json.loads(row or b"null") for row in restored.rows] != _ROWS:
        return "a transcript that was archived is not restored as it was"
    return ""


@contextmanager
def _scratch(home: Path) -> Iterator[Path]:
    """A private directory in ``home``; what an earlier, killed run left goes too."""
    for old in home.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > _ABANDONED:
                shutil.rmtree(old, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=home))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def healthy_backends(home: Path, profile: ProfileStore, config: Config) -> AsyncIterator[Check]:
    """Each backend of the profile writes and reads; a remote one only because the configuration names it."""
    for name in roles(config, "local" if config.backend == "auto" else config.backend):
        try:
            backend = build_backend(find_backend(name, home), backend_context(name, profile, config))
        except MemorydError:  # the check of the settings says so
            continue
        if name == "null":
            yield fine("health null", "capture is off: nothing is recorded, and a checkpoint is archived all the same")
        elif backend.is_available():
            yield await _health(name, backend, lock_holder(profile.directory / "memory.db"))


async def _asked(backend: Backend) -> Health:
    try:
        with trio.fail_after(_ANSWER):
            await backend.open()
            return await backend.health()
    except trio.TooSlowError:
        return Health(False, f"no answer within {_ANSWER:g} s")


async def _health(name: str, backend: Backend, holder: int | None) -> Check:
    remedy = "check its address, its key and the network"
    if name == "local":
        remedy = "memoryd repair rebuilds it from the log" if holder is None else f"let process {holder} go on, or end it"
    started = time.perf_counter()
    try:
        health = await _asked(backend)
        if not health:
            return broken(f"health {name}", health.detail or "it is not healthy", remedy)
        if health.warning:
            return doubtful(f"health {name}", health.warning, "look at the service itself; local recall finds everything all the same")
        took = (time.perf_counter() - started) * 1000
        return fine(f"health {name}", f"it wrote and read in {took:.0f} ms")
    except MemorydError as error:
        return broken(f"health {name}", str(error), remedy if isinstance(error, BackendError) else remedy_of(error, remedy))
    except Exception as error:  # noqa: BLE001 - a backend may be a stranger's code: it is reported, and the rest goes on
        return broken(f"health {name}", f"it failed: {type(error).__name__}", "mend the plug-in, or choose another backend")
    finally:
        with suppress(Exception):
            await backend.aclose()
