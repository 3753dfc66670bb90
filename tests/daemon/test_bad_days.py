"""What happens to a daemon: killed, its socket or its home removed, a full disk, a jumping clock, clients that hang or fork."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from memoryd.store import profile_directory
from tests.daemon.harness import SCOPE, Daemon, Raw, frame, logged, until


@pytest.mark.parametrize("seed", range(2))
def test_killed_in_the_middle_of_replies_nothing_acknowledged_is_lost(tmp_path: Path, seed: int) -> None:
    """kill -9 at a random instant while six clients are answered; what each had read before is in the log, once, in order."""
    acknowledged: list[list[str]] = [[] for _ in range(6)]

    def talk(number: int, raw: Raw) -> None:
        scope = {"user": "ada", "session": f"s{number}"}
        with contextlib.suppress(OSError):
            for first in range(0, 10**6, 20):
                raw.send(b"".join(frame("sync_turn", ask=first + n, user=f"{number}-{first + n}", assistant="", scope=scope) for n in range(20)))
                for _ in range(20):
                    answer = raw.read()
                    if answer is None:
                        return
                    acknowledged[number].append(answer["result"]["event_id"])

    with Daemon(tmp_path) as daemon:
        raws = [daemon.client() for _ in acknowledged]
        raws[0].turn("a quetzal")
        threads = [threading.Thread(target=talk, args=item) for item in enumerate(raws)]
        for thread in threads:
            thread.start()
        until(lambda: all(acknowledged))
        time.sleep(Random(seed).uniform(0, 0.3))
        daemon.kill()
        for thread, raw in zip(threads, raws, strict=True):
            thread.join()
            raw.close()
        found = logged(daemon.home)
        for number, ids in enumerate(acknowledged):
            assert [found[id] for id in ids] == [f"{number}-{turn}" for turn in range(len(ids))]
        assert len(set(found.values())) == len(found), "nothing twice"
        daemon.start()
        with daemon.client() as raw:
            assert [hit["text"] for hit in raw.call("recall", query="quetzal", scope={"user": "ada"})["hits"]] == ["a quetzal"]


def test_a_removed_socket_comes_back_and_whoever_was_connected_notices_nothing(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon, daemon.client() as raw:
        before = raw.turn("before")
        daemon.path.unlink()
        during = raw.turn("during")
        until(daemon.path.exists)
        daemon.check()
        shutil.rmtree(daemon.path.parent)
        until(daemon.path.exists)
        after = raw.turn("after")
        daemon.check()
        daemon.stop()
        assert list(logged(daemon.home)) == [before, during, after]


def test_a_socket_that_another_program_took_is_left_to_it(tmp_path: Path) -> None:
    """The daemon ends in order: two would answer for the same path."""
    with Daemon(tmp_path) as daemon, daemon.client() as raw:
        id = raw.turn("before")
        (tmp_path / "second").mkdir()
        with Daemon(tmp_path / "second", home=daemon.home) as other:
            daemon.signal(signal.SIGSTOP)
            shutil.rmtree(daemon.path.parent)
            daemon.path.parent.mkdir(mode=0o700)
            other.path.with_name("m.sock.lock").rename(daemon.path.with_name("m.sock.lock"))
            other.path.rename(daemon.path)
            daemon.signal(signal.SIGCONT)
            assert daemon.wait() == 0
            assert daemon.path.exists()
            with Raw(daemon.path) as client:
                assert client.hello()["pid"] == other.pid
        assert id in logged(daemon.home)


def test_a_home_that_is_removed_is_refused_loudly_and_comes_back(tmp_path: Path) -> None:
    """What is committed to a removed file goes nowhere, so nothing is acknowledged any more; another home goes on."""
    with Daemon(tmp_path, config="[daemon]\nprofile_idle = 0.3\n") as daemon, daemon.client("p", tmp_path / "other") as other:
        with daemon.client() as raw:
            raw.turn("before")
            shutil.rmtree(profile_directory(daemon.home, "default"))
            deadline = time.monotonic() + 60
            while True:  # it is noticed at the barrier, some milliseconds later
                raw.send(frame("sync_turn", ask="x", user="after", assistant="", scope=SCOPE))
                answer = raw.read()
                if "error" in answer or time.monotonic() > deadline:
                    break
                time.sleep(0.01)
            assert answer["error"]["data"]["type"] == "JournalUnavailable", answer
            kept = other.turn("another home")
        with Raw(daemon.path) as watch:
            watch.hello(None)
            until(lambda: all(str(daemon.home) != one["home"] for one in watch.call("daemon_status")["profiles"]))
        with daemon.client() as raw:
            id = raw.turn("a new life")
        daemon.stop()
        assert list(logged(daemon.home)) == [id]
        assert kept in logged(tmp_path / "other", "p")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=0700", "memoryd-test", place], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("only where this user may mount")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_refuses_and_takes_again_when_there_is_room(tmp_path: Path, small_disk: Path) -> None:
    config = "[store]\nfree_floor = 65536\n[gate]\nmode = 'block'\n"
    home = small_disk / "home"
    with Daemon(tmp_path, home=home, config=config) as daemon, daemon.client() as raw, daemon.client("p", tmp_path / "other") as other:
        kept = [raw.turn("before")]
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        refused = 0
        for number in range(200):
            raw.send(frame("sync_turn", ask=number, user=f"during {number}" + "x" * 2000, assistant="", scope=SCOPE))
            answer = raw.read()
            if "result" in answer:
                kept.append(answer["result"]["event_id"])
            else:
                refused += 1
                assert answer["error"]["data"]["reason"] == "full", answer
        assert refused
        rows = [{"role": "user", "content": str(n) + os.urandom(2000).hex()} for n in range(100)]
        raw.send(frame("checkpoint", ask="gate", messages=rows, scope=SCOPE))
        blocked = raw.read()["error"]["data"]
        assert blocked["type"] == "CheckpointBlocked" and blocked["remedy"]
        other.turn("on another disk")
        filler.unlink()
        kept.append(raw.turn("after"))
        assert raw.call("checkpoint", messages=rows, scope=SCOPE)["verdict"] == "archived"
        daemon.check()
        daemon.stop()
        found = logged(home)
        assert [id for id in found if id in set(kept)] == kept


@pytest.mark.parametrize("jump", [10**8, -(10**8)])
def test_a_clock_that_jumps_changes_neither_order_nor_waits(tmp_path: Path, jump: int) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    config = "[daemon]\nidle = 2\n"
    with Daemon(tmp_path, config=config, env={"CLOCK_FILE": str(clock)}, program=("-m", "tests.daemon.clock")) as daemon:
        with daemon.client() as raw:
            ids = [raw.turn("first")]
            raw.call("store", key="city", value="Oslo", scope=SCOPE)
            clock.write_text(str(jump))
            ids.append(raw.turn("second"))
            raw.call("store", key="city", value="Bergen", scope=SCOPE)
            time.sleep(0.3)
            assert raw.call("retrieve", key="city", scope=SCOPE)["value"] == "Bergen"
            assert [hit["text"] for hit in raw.call("recall", query="second", scope={"user": "ada"})["hits"]] == ["second"]
            clock.write_text("0")
            ids.append(raw.turn("third"))
            assert raw.call("status", scope=SCOPE)["state"] == "ok"
        daemon.stop()
        assert list(logged(daemon.home)) == ids


HANG = """
import socket, sys, time
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(bytes.fromhex(sys.argv[2]))
print(client.recv(100000).count(b"result"), flush=True)
time.sleep(600)
"""


def test_a_client_that_stands_still_holds_up_nobody(tmp_path: Path) -> None:
    hello = frame("hello", ask=0, protocol=[1, 1], client="", home=None, profile="default")
    with Daemon(tmp_path) as daemon, daemon.client() as raw:
        with subprocess.Popen([sys.executable, "-c", HANG, daemon.path, hello.hex()], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None and child.stdout.readline() == b"1\n"
            child.send_signal(signal.SIGSTOP)
            id = raw.turn("meanwhile")
            daemon.check()
            daemon.signal()
            assert daemon.wait() == 0, "nor the end"
            child.kill()
        assert id in logged(daemon.home)


def test_a_fork_of_a_client_shares_its_connection_and_harms_nobody(tmp_path: Path) -> None:
    """Parent and child send whole frames over the same socket: all arrive.  The child's end does not end the parent's connection."""
    with Daemon(tmp_path) as daemon, daemon.client() as raw:
        child = os.fork()
        if child == 0:
            for number in range(100):
                raw.send(frame("sync_turn", user=f"child {number}", assistant="", scope={"user": "ada", "session": "child"}))
            os._exit(0)
        for number in range(100):
            raw.send(frame("sync_turn", user=f"parent {number}", assistant="", scope=SCOPE))
        assert os.waitpid(child, 0)[1] == 0
        raw.call("ping")
        daemon.check()
        daemon.stop()
        found = list(logged(daemon.home).values())
    for who in ("parent", "child"):
        assert [text for text in found if text.startswith(who)] == [f"{who} {number}" for number in range(100)]


def test_one_broken_profile_is_its_own_trouble(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon, daemon.client("good") as good:
        broken = profile_directory(daemon.home, "bad")
        broken.mkdir(parents=True)
        (broken / "profile.json").write_text("{")
        for _ in range(5):
            with Raw(daemon.path) as raw:
                raw.send(frame("hello", ask=1, protocol=[1, 1], client="", home=None, profile="bad"))
                assert raw.read()["error"]["data"]["type"] == "StoreCorrupt"
                assert raw.is_closed()
            good.turn("goes on")
        (broken / "profile.json").unlink()
        with daemon.client("bad") as healed:
            healed.turn("well again")


def test_a_killed_daemon_leaves_nothing_in_the_way_of_the_next(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        for round in range(3):
            with daemon.client() as raw:
                raw.turn(f"round {round}")
            daemon.kill()
            daemon.start()
        daemon.stop()
        assert list(logged(daemon.home).values()) == [f"round {round}" for round in range(3)]
