"""A child that plants words and forgets them one by one: ``python child_forget.py HOME NAME``; NAME ``project`` only projects."""

from __future__ import annotations

import sys

import trio

import memoryd


async def main(home: str, name: str) -> None:
    async with memoryd.open_runtime(home) as rt:
        if name == "project":
            print("ready", flush=True)
            while True:
                await rt.catch_up(1)
                await trio.sleep(0.001)
        with memoryd.scope(user="ada", session=name):
            turns = [rt.sync_turn(f"zq{name}x{n}end planted", "noted") for n in range(40)]
            rows = [{"role": "user", "content": f"zq{name}x{n}end planted"} for n in range(40)]
            await rt.checkpoint(rows)
            await rt.drain()
            print("ready", flush=True)
            for n, turn in enumerate(turns):
                if (await rt.forget(turn.event_id)).pending == 0:
                    print(f"zq{name}x{n}end", flush=True)
        await trio.sleep_forever()


trio.run(main, sys.argv[1], sys.argv[2])
