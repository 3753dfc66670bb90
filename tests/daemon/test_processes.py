"""Several processes on one profile, a daemon among them: one delivers to the remote backend, all write, nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

import memoryd
from memoryd.core import BackendStatus
from memoryd.testing import CrashChild
from tests.daemon.harness import Daemon, logged

# A service that all processes reach: a file that each appends what it is sent to, one line an event.  It deduplicates nothing.
PLUGIN = """
import os
from memoryd.testing import FakeRemote

class Ledger(FakeRemote):
    def __init__(self, path):
        super().__init__("ledger")
        self._path = path

    async def apply(self, entries):
        outcomes = await super().apply(entries)
        with open(self._path, "ab", buffering=0) as file:
            file.write(b"".join(f"{os.getpid()} {e.event.event_id.hex()} {e.event.user}\\n".encode() for e in entries))
        return outcomes

def create(context):
    return Ledger(context.config["path"])
"""
SETTINGS = """
mirrors = ["ledger"]
[logging]
level = "off"
[backends.ledger]
path = "{path}"
"""

# Writes turns of a session of its own, says each that is journaled, until it is killed or has said enough.
EMBEDDED = """
import sys, trio, memoryd
home, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
async def main():
    async with memoryd.open_runtime(home) as rt:
        with memoryd.scope(user="ada", session=name):
            for n in range(count):
                accepted = await rt.settled(rt.sync_turn(f"{name} {n}", "ok"), 60)
                print(accepted.event_id, flush=True)
                await trio.sleep(0.01)
            if len(sys.argv) > 4:
                await trio.sleep_forever()
trio.run(main)
"""
CLIENT = """
import sys, time
from memoryd.client.blocking import Client
home, socket, name, count = *sys.argv[1:4], int(sys.argv[4])
with Client(home, socket=socket) as memory, memory.scope(user="ada", session=name):
    for n in range(count):
        accepted = memory.settled(memory.sync_turn(f"{name} {n}", "ok"), 60)
        assert accepted.state == "journaled", accepted
        print(accepted.event_id, flush=True)
        time.sleep(0.01)
"""


class World:
    """A home with the plugin, and what was delivered to it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self._delivered = folder / "delivered"
        self._folder = folder
        (self.home / "plugins/ledger").mkdir(parents=True)
        (self.home / "plugins/ledger/__init__.py").write_text(PLUGIN)
        (self.home / "memoryd.toml").write_text(SETTINGS.format(path=self._delivered))

    def daemon(self) -> Daemon:
        return Daemon(self._folder, home=self.home)

    def child(self, program: str, *arguments: object) -> CrashChild:
        return CrashChild(["-c", program, str(self.home), *map(str, arguments)])

    def lines(self) -> list[tuple[int, str, str]]:
        """Who delivered, the event's id, its text; in the order of arrival."""
        text = self._delivered.read_text() if self._delivered.exists() else ""
        rows = [line.split(" ", 2) for line in text.splitlines()]
        return [(int(pid), event_id, said) for pid, event_id, said in rows]

    def owner(self) -> int:
        """The process that delivers, as the lock's file says, or 0."""
        words = next(self.home.glob("profiles/*/owner.lock")).read_text().split()
        return int(words[0]) if words else 0

    def once(self) -> list[str]:
        """The texts as a reader sees them: each event where it arrived first."""
        return list({event_id: said for _, event_id, said in reversed(self.lines())}.values())[::-1]

    def check(self) -> None:
        """What the log has is what was delivered: everything, nothing twice for a reader, each session in its order."""
        log = logged(self.home)
        firsts = {event_id: said for _, event_id, said in self.lines()}
        assert firsts == log
        sessions: dict[str, list[str]] = {}
        for said in self.once():
            sessions.setdefault(said.rpartition(" ")[0], []).append(said)
        for name, texts in sessions.items():
            assert texts == [f"{name} {n}" for n in range(len(texts))]


async def ledger_of(rt: memoryd.Runtime) -> BackendStatus:
    return next(backend for backend in (await rt.status()).backends if backend.name == "ledger")


async def wait_for(condition: Callable[[], object]) -> None:
    with trio.fail_after(60):  # a hang, not a measurement
        while not condition():
            await trio.sleep(0.02)


async def test_a_daemon_and_a_program_share_a_profile(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.daemon() as daemon, memoryd.scope(user="ada", session="s"):
        async with memoryd.connect(world.home, socket=daemon.path) as client:
            await client.settled(client.sync_turn("daemon 0", "ok"), 60)
            await wait_for(world.lines)
            async with memoryd.open_runtime(world.home) as rt:
                rt.sync_turn("program 0", "ok")
                await wait_for(lambda: len(world.lines()) == 2)
                assert {pid for pid, _, _ in world.lines()} == {daemon.pid}  # one delivers, for both
                assert (await ledger_of(rt)).owner == daemon.pid == (await ledger_of(client)).owner

                daemon.kill()
                rt.sync_turn("program 1", "ok")
                await wait_for(lambda: len(world.lines()) == 3)
                assert world.lines()[-1][0] == os.getpid()
                assert (await ledger_of(rt)).owner == os.getpid()

                await trio.to_thread.run_sync(daemon.start)
                await client.settled(client.sync_turn("daemon 1", "ok"), 60)
                await wait_for(lambda: len(world.lines()) == 4)
                assert world.lines()[-1][0] == os.getpid()  # who owns it goes on owning it
                assert (await ledger_of(client)).owner == os.getpid()
            await client.settled(client.sync_turn("daemon 2", "ok"), 60)
            await wait_for(lambda: len(world.lines()) == 5)
            assert world.lines()[-1][0] == daemon.pid  # and lets go when it ends
    world.check()


async def test_a_daemon_that_stands_still_is_shown_and_nobody_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.runtime._owner._STALE", 2.0)  # its heart beats every second
    world = World(tmp_path)
    with world.daemon() as daemon, memoryd.scope(user="ada", session="s"):
        async with memoryd.connect(world.home, socket=daemon.path) as client:
            await client.settled(client.sync_turn("daemon 0", "ok"), 60)
            await wait_for(world.lines)
            async with memoryd.open_runtime(world.home) as rt:
                await rt.drain()
                await trio.sleep(0.5)  # it is idle: stopped inside a transaction it would hold the log's lock
                daemon.signal(signal.SIGSTOP)
                rt.sync_turn("program 0", "ok")
                with trio.fail_after(60):
                    while not (await ledger_of(rt)).owner_stopped:
                        await trio.sleep(0.2)
                status = await rt.status()
                assert status.state == "degraded"
                assert any(str(daemon.pid) in note for note in status.notes)
                assert (await rt.drain(0)).local or (await rt.drain(30)).local  # recall needs no owner
                assert [hit.text for hit in await rt.recall("program")] == ["program 0"]
                daemon.signal(signal.SIGCONT)
                await wait_for(lambda: len(world.lines()) == 2)
                with trio.fail_after(60):
                    while (await ledger_of(rt)).owner_stopped:
                        await trio.sleep(0.05)
    world.check()


async def test_two_daemons_of_two_sockets_deliver_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    (tmp_path / "other").mkdir()
    with world.daemon() as one, Daemon(tmp_path / "other", home=world.home) as two, memoryd.scope(user="ada"):
        for name, daemon in (("one", one), ("two", two)):
            async with memoryd.connect(world.home, socket=daemon.path, daemon="require") as rt:
                with memoryd.scope(session=name):
                    for n in range(20):
                        await rt.settled(rt.sync_turn(f"{name} {n}", "ok"), 60)
        await wait_for(lambda: len(world.lines()) == 40)
        assert len({pid for pid, _, _ in world.lines()}) == 1
    world.check()


async def test_ten_processes_and_three_deaths(tmp_path: Path) -> None:
    """A daemon, four of its clients, five that have the profile open themselves; the owner is killed three times."""
    world, count = World(tmp_path), 150
    with ExitStack() as stack:
        daemon = stack.enter_context(world.daemon())
        clients = [stack.enter_context(world.child(CLIENT, daemon.path, f"client{n}", count)) for n in range(4)]
        programs = [stack.enter_context(world.child(EMBEDDED, f"program{n}", count, "stay")) for n in range(5)]
        children = {child.pid: child for child in programs}
        for child in (*clients, *programs):
            await trio.to_thread.run_sync(child.wait_for, 1, 60.0)
        for _ in range(3):
            await wait_for(world.owner)
            owner = world.owner()
            if owner == daemon.pid:
                daemon.kill()
                await trio.to_thread.run_sync(daemon.start)
            else:
                children.pop(owner).kill()
            await wait_for(lambda owner=owner: world.owner() not in (0, owner))
        for child in clients:
            await trio.to_thread.run_sync(child.wait, 120.0)
        for child in children.values():
            await trio.to_thread.run_sync(child.wait_for, count, 120.0)
        said = [ack for child in (*clients, *programs) for ack in child.acks]
        log = logged(world.home)
        assert len(said) == len(set(said)) and set(said) <= set(log)  # every promise is kept
        texts = Counter(log.values())
        assert max(texts.values()) == 1  # and nothing is there twice
        await wait_for(lambda: len({event_id for _, event_id, _ in world.lines()}) == len(logged(world.home)))
    world.check()
    assert len(world.lines()) <= len(logged(world.home)) + 3 * 100  # only the batch that a death cut off is sent again


@pytest.mark.soak
def test_how_long_taking_over_takes(tmp_path: Path) -> None:
    """Printed, not judged: the lock is tried every half second."""
    world = World(tmp_path)
    with world.daemon() as daemon, world.child(EMBEDDED, "program", 1, "stay") as program, daemon.client() as raw:
        program.wait_for(1)
        raw.turn("daemon 0")
        while len(world.lines()) < 2:
            time.sleep(0.01)
        daemon.kill()
        started = time.monotonic()
        while world.owner() != program.pid:
            time.sleep(0.005)
        print(f"taken over after {time.monotonic() - started:.2f} s")
