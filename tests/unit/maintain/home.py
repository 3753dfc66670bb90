"""Filling a home, and looking into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

import memoryd
from memoryd.core import Config, build_config

QUIET: Config = build_config({"logging.level": "off", "store.free_floor": 0})
TALK = [
    {"role": "user", "content": "where is the key"}, {"role": "assistant", "content": "under the mat"},
    {"role": "user", "content": "thank you"}, {"role": "assistant", "content": "any time"},
]  # fmt: skip


def with_runtime(home: Path, work: Callable[[memoryd.Runtime], Any], profile: str = "default", user: str = "ada", session: str = "s1") -> Any:
    """``await work(runtime)`` in a loop of its own, as ``user``."""

    async def main() -> Any:
        async with memoryd.open_runtime(home, profile, QUIET) as runtime:
            assert await runtime.catch_up(30) == 0
            with memoryd.scope(user=user, session=session):
                return await work(runtime)

    return trio.run(main)


async def fill(runtime: memoryd.Runtime, count: int = 40) -> list[str]:
    """Turns with ids of their own, two memories, two checkpoints; the ids of the turns."""
    accepted = [runtime.sync_turn(f"turn {number} of the zebra", "noted", turn_id=f"t{number}") for number in range(count)]
    await runtime.store("city", "Oslo")
    await runtime.store("pet", "a cat")
    await runtime.checkpoint(TALK[:2])
    await runtime.checkpoint(TALK)
    assert await runtime.drain(30)
    return [one.event_id for one in accepted]


async def turns(runtime: memoryd.Runtime) -> int:
    """How many turns the projection has, once the runtime is well."""
    status = await runtime.status()
    assert status.state == "ok", status
    return int(status.backends[0].rows["turns"])


def holds(root: Path, word: str) -> list[str]:
    """The files below ``root`` that hold ``word``."""
    return [str(path) for path in root.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]
