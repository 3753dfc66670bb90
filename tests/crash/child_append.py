"""A child that accepts turns as fast as it can and says so: ``python child_append.py HOME NAME``.  It never ends by itself."""

from __future__ import annotations

import sys

import trio

import memoryd


async def main(home: str, name: str) -> None:
    async with memoryd.open_runtime(home) as rt:
        with memoryd.scope(user="ada", session=name):
            number = 0
            while True:
                accepted = rt.sync_turn(f"turn number{name}x{number}", "Noted.", turn_id=f"{name}-{number}")
                if accepted.state == "journaled":
                    print(number, accepted.seq, accepted.event_id, flush=True)
                else:
                    print(number, "held", accepted.event_id, flush=True)
                number += 1
                if number % 16 == 0:  # let the writer task project, so that kills also meet it in mid-commit
                    await trio.sleep(0.001)


trio.run(main, sys.argv[1], sys.argv[2])
