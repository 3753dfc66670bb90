"""A sibling process on the same profile: ``python child_sibling.py HOME ROLE [ARGUMENT]``.  It goes on when the file HOME/go appears.

``idle`` opens the profile and waits; ``chat NAME`` accepts a turn every few milliseconds from ``go`` on; ``lock FILE`` holds a write
transaction with a change in it until ``go``, then commits; ``read FILE`` holds a read transaction; ``vacuum FILE`` vacuums until ``go``;
``readers COUNT`` forks readers that open the profile and recall, and kills each with -9 at a random instant.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import sys
import time
from pathlib import Path

import apsw
import trio

import memoryd
from memoryd.blocking import Memory
from memoryd.store import profile_directory

HOME = Path(sys.argv[1])
GO = HOME / "go"


def say(*words: object) -> None:
    print(*words, flush=True)


def wait_for_go() -> None:
    while not GO.exists():
        time.sleep(0.01)


def plain(file: str) -> apsw.Connection:
    connection = apsw.Connection(str(profile_directory(HOME, "default") / file))
    connection.set_busy_timeout(30_000)
    return connection


async def idle() -> None:
    async with memoryd.open_runtime(HOME) as rt:
        await rt.drain()
        say("ready")
        await trio.sleep_forever()


async def chat(name: str) -> None:
    async with memoryd.open_runtime(HOME) as rt:
        with memoryd.scope(user="ada", session=name):
            rt.sync_turn(f"{name} is here", "ok")
            await rt.drain()
            say("ready")
            while not GO.exists():
                await trio.sleep(0.01)
            for n in itertools.count():
                accepted = rt.sync_turn(f"zebra{name}x{n}", "ok")
                say(accepted.state, accepted.event_id, f"zebra{name}x{n}")
                await trio.sleep(0.02)


def lock(file: str) -> None:
    connection = plain(file)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE held_by_sibling (x)")
    connection.execute("DROP TABLE held_by_sibling")
    say("ready")
    wait_for_go()
    connection.execute("COMMIT")
    say("done")
    signal.pause()


def read(file: str) -> None:
    connection = plain(file)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    say("ready")
    signal.pause()


def vacuum(file: str) -> None:
    connection = plain(file)
    say("ready")
    while not GO.exists():
        connection.execute("VACUUM")
        say("vacuumed")
    signal.pause()


def readers(count: str) -> None:
    chance = random.Random(103)
    for n in range(int(count)):
        pid = os.fork()
        if pid == 0:
            with Memory(HOME) as memory, memoryd.scope(user="ada"):
                memory.recall("zebra")
            os._exit(0)
        time.sleep(chance.uniform(0, 0.06))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        say("killed", n)
    signal.pause()


match sys.argv[2:]:
    case ["idle"]:
        trio.run(idle)
    case ["chat", name]:
        trio.run(chat, name)
    case [role, argument]:
        {"lock": lock, "read": read, "vacuum": vacuum, "readers": readers}[role](argument)
