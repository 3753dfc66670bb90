"""A runtime whose surroundings are cancelled ends at once: nobody is left who could drain it, and what was accepted is in the log."""

from __future__ import annotations

from pathlib import Path

import trio

import memoryd


async def test_a_cancelled_runtime_waits_for_nobody_and_loses_nothing(tmp_path: Path) -> None:
    accepted = 0
    with trio.fail_after(60):
        with trio.move_on_after(0.3):
            async with memoryd.open_runtime(tmp_path, config={"deadlines.close": 600}) as rt:
                with memoryd.scope(user="ada", session="s1"):
                    while True:
                        rt.sync_turn(f"turn {accepted}", "ok")
                        accepted += 1
                        await trio.lowlevel.checkpoint()
    async with memoryd.open_runtime(tmp_path) as rt:
        assert await rt.drain()
        status = await rt.status()
        assert status.backends[0].rows["turns"] == accepted
