"""Of the processes of a profile one delivers; when it dies another takes over, and when it stands still everybody can see that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

import memoryd
from memoryd.core import BackendStatus
from memoryd.runtime._owner import Owner, read_owner
from memoryd.testing import CrashChild, FakeRemote, registered

# Delivers what it finds in the log, says so line by line, and goes on until it is killed.
CHILD = """
import sys, trio, memoryd
from memoryd.testing import FakeRemote, registered

class Telling(FakeRemote):
    async def apply(self, entries):
        outcomes = await super().apply(entries)
        for entry in entries:
            print(entry.event.user, flush=True)
        return outcomes

async def main():
    with registered("fake", lambda context: Telling()):
        async with memoryd.open_runtime(sys.argv[1], config={"mirrors": ["fake"], "logging": {"level": "off"}}) as rt:
            print("open", flush=True)
            if len(sys.argv) > 2:
                with memoryd.scope(user="ada", session="s1"):
                    rt.sync_turn(sys.argv[2], "ok")
            await trio.sleep_forever()
trio.run(main)
"""
SETTINGS = {"mirrors": ["fake"], "logging": {"level": "off"}}


@contextmanager
def child(tmp_path: Path, home: Path, *words: str) -> Iterator[CrashChild]:
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    with CrashChild([script, home, *words]) as process:
        process.wait_for(1, timeout=60)
        yield process


async def fake_of(rt: memoryd.Runtime) -> BackendStatus:
    return next(backend for backend in (await rt.status()).backends if backend.name == "fake")


async def test_one_delivers_and_when_it_is_killed_another_takes_over(tmp_path: Path) -> None:
    home, remote = tmp_path / "home", FakeRemote()
    with child(tmp_path, home, "from the child") as owner:
        await trio.to_thread.run_sync(owner.wait_for, 2, 60.0)
        with registered("fake", lambda context: remote), memoryd.scope(user="ada", session="s1"):
            async with memoryd.open_runtime(home, config=SETTINGS) as rt:
                assert (await fake_of(rt)).owner == owner.pid
                rt.sync_turn("while it lives", "ok")
                assert (await rt.drain(30)).remote  # the child has sent it
                assert owner.wait_for(3)[1:] == ["from the child", "while it lives"]
                assert not remote.received
                owner.kill()
                rt.sync_turn("after its death", "ok")
                assert (await rt.drain(30)).remote
                assert [turn.user for turn in remote.turns] == ["after its death"]
                seen = await fake_of(rt)
                assert (seen.owner, seen.owner_stopped, seen.state) == (os.getpid(), False, "ok")


async def test_an_owner_that_stands_still_is_shown(tmp_path: Path) -> None:
    home, remote = tmp_path / "home", FakeRemote()
    with child(tmp_path, home, "from the child") as owner:
        owner.wait_for(2)
        with registered("fake", lambda context: remote), memoryd.scope(user="ada", session="s1"):
            async with memoryd.open_runtime(home, config=SETTINGS) as rt:
                owner.stop()
                rt.sync_turn("meanwhile", "ok")
                with trio.fail_after(60):
                    while not (await fake_of(rt)).owner_stopped:
                        await trio.sleep(0.2)
                status = await rt.status()
                assert status.state == "degraded"
                assert any(str(owner.pid) in note and "resume" in note for note in status.notes)
                assert (await fake_of(rt)).backlog == 1
                owner.resume()
                assert (await rt.drain(30)).remote
                assert owner.wait_for(3)[2] == "meanwhile"
                assert not (await fake_of(rt)).owner_stopped


async def test_two_runtimes_of_one_process_send_once(tmp_path: Path) -> None:
    remote = FakeRemote()
    with registered("fake", lambda context: remote), memoryd.scope(user="ada", session="s1"):
        async with memoryd.open_runtime(tmp_path, config=SETTINGS) as one, memoryd.open_runtime(tmp_path, config=SETTINGS) as two:
            for n in range(20):
                one.sync_turn(f"one {n}", "ok")
                two.sync_turn(f"two {n}", "ok")
            assert (await one.drain(30)).remote
            assert (await two.drain(30)).remote
    assert len(remote.received) == len(remote.turns) == 40


def test_an_owner_that_ends_leaves_no_trace(tmp_path: Path) -> None:
    first, second = Owner(tmp_path), Owner(tmp_path)
    assert first.hold()
    assert not second.hold()
    seen = read_owner(tmp_path / "owner.lock")
    assert seen is not None and (seen.pid, seen.stopped) == (os.getpid(), False)
    assert (tmp_path / "owner.lock").stat().st_mode & 0o777 == 0o600
    first.close()
    assert read_owner(tmp_path / "owner.lock") is None
    assert second.hold()
    second.close()


def test_a_lock_file_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    assert not Owner(tmp_path / "missing").hold()


ORPHAN = """
import os, sys, time, warnings
from pathlib import Path
from memoryd.runtime._owner import Owner
warnings.simplefilter("ignore", DeprecationWarning)
owner = Owner(Path(sys.argv[1]))
assert owner.hold()
child = os.fork()
if child:
    print(child, flush=True)
os.close(1)
time.sleep(600)
"""


def test_the_child_of_a_fork_does_not_keep_a_dead_owners_lock(tmp_path: Path) -> None:
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    with CrashChild([script, tmp_path]) as process:
        orphan = int(process.wait_for(1)[0])
        try:
            heir = Owner(tmp_path)
            assert not heir.hold()
            process.kill()
            assert heir.hold()
            heir.close()
        finally:
            os.kill(orphan, 9)
