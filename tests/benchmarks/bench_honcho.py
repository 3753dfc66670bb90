"""Honcho as a backend: delivery in batches against a request a turn, and what a dead or hanging server costs the caller."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from _figures import figure, interleave, median

import memoryd
from memoryd.core import BackendContext, Cursor, Entry, Scope, Turn, new_event_id
from memoryd.redact import load_redactor
from memoryd.testing.honcho import Fault, HonchoServer
from memoryd_honcho import HonchoBackend, create

TURNS = 10_000
ONE_BY_ONE = 500  # turns of the baseline; its time grows with the number
RECALL_DEADLINE = 2.0
SERVER = """
import sys
from memoryd.testing.honcho import HonchoServer
with HonchoServer() as honcho:
    honcho.modes.latency = 0.002  # of the fastest answer that a real server was seen to give
    print(honcho.url, flush=True)
    sys.stdin.read()
"""
QUIET = {"logging": {"level": "off"}}


def entries(first: int, count: int) -> list[Entry]:
    scope = Scope(user="ann", session="s")
    turns = (Turn(new_event_id(), scope, number, f"question number {number}", "Noted.") for number in range(first, first + count))
    return [Entry(Cursor("epoch", first + place), turn) for place, turn in enumerate(turns)]


async def apply(backend: HonchoBackend, batch: list[Entry]) -> None:
    outcomes = await backend.apply(batch)
    assert all(outcome.kind == "ok" for outcome in outcomes), outcomes


@contextmanager
def server_process() -> Iterator[str]:
    """The address of a server in a process of its own, as a real one is."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


async def delivery() -> dict[str, Any]:
    with server_process() as url:
        context = BackendContext("honcho", Path(), "p", "i", b"k" * 32, {"url": url}, redactor=load_redactor)
        backend = create(context)
        await backend.open()
        await apply(backend, entries(1, 1))
        start = time.perf_counter()
        for entry in entries(2, ONE_BY_ONE):
            await apply(backend, [entry])
        single = (time.perf_counter() - start) / ONE_BY_ONE
        start = time.perf_counter()
        for first in range(ONE_BY_ONE + 2, ONE_BY_ONE + 2 + TURNS, 100):
            await apply(backend, entries(first, 100))
        batched = (time.perf_counter() - start) / TURNS
        await backend.aclose()
    detail = f"{1 / batched:.0f} turns/s in batches; {1 / single:.0f} with a request each; round trip 2 ms"
    return figure("delivery of 10,000 turns / a request a turn", 10, None, single / batched, "x", detail, higher=True)


async def dead(home: Path) -> dict[str, Any]:
    """Two runtimes in turn: one alone, one whose Honcho refuses every connection."""
    with HonchoServer() as honcho:
        url = honcho.url
    lost = {"mirrors": ["honcho"], "backends": {"honcho": {"url": url}}, **QUIET}
    async with memoryd.open_runtime(home / "alone", config=QUIET) as alone, memoryd.open_runtime(home / "dead", config=lost) as mirrored:
        with memoryd.scope(user="ann", session="s"):
            times: dict[str, list[float]] = {"alone": [], "mirrored": []}
            for _ in range(40):
                part = interleave(25, alone=lambda: alone.sync_turn("hello", "ok"), mirrored=lambda: mirrored.sync_turn("hello", "ok"))
                for name, values in part.items():
                    times[name] += values
                await trio.sleep(0.005)
    ours, floor = median(times["mirrored"]), median(times["alone"])
    return figure("sync_turn with a dead Honcho / without one, p50", 1.2, 1.1, ours / floor, "x", f"{ours * 1e6:.0f} us; {floor * 1e6:.0f} us")


async def hanging(home: Path) -> dict[str, Any]:
    with HonchoServer() as honcho:
        config = {"backend": "honcho", "backends": {"honcho": {"url": honcho.url}}, **QUIET}
        async with memoryd.open_runtime(home / "hanging", config=config) as runtime:
            with memoryd.scope(user="ann", session="s"):
                runtime.sync_turn("my zebra is called Zoe", "Noted.")
                assert (await runtime.drain(30)).remote
                honcho.faults.append(Fault("hang", times=1_000))
                start = time.perf_counter()
                found = await runtime.recall("zebra")
                took = time.perf_counter() - start
                assert found.stale and found.source == "local" and len(found) == 1
            honcho.faults.clear()
            honcho.release()
    return figure("recall with a hanging Honcho / its deadline", 1.0, None, took / RECALL_DEADLINE, "x", f"{took:.2f} s, from local")


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        return [trio.run(delivery), trio.run(dead, Path(scratch)), trio.run(hanging, Path(scratch))]
