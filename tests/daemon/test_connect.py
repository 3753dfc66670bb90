"""connect(): through the daemon or here, with the same interface, and nothing lost or doubled where the daemon goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

import memoryd
from memoryd.client import Client
from memoryd.connect import _Lasting
from memoryd.errors import DaemonUnavailable
from memoryd.wire import config_fingerprint
from tests.daemon.harness import Daemon, logged

QUIET = "[logging]\nlevel = 'off'\n"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart takes less than this; tests need not wait as long as people do."""
    monkeypatch.setattr("memoryd.client._attempts.AWAY", 0.5)
    monkeypatch.setattr("memoryd.client._line.AWAY", 0.5)


def is_daemon(rt: memoryd.Runtime) -> bool:
    return isinstance(rt, Client)


async def test_without_a_daemon_it_is_a_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with memoryd.connect(tmp_path, socket=tmp_path / "none.sock") as rt:
        assert isinstance(rt, memoryd.Runtime)
    with pytest.raises(DaemonUnavailable):
        async with memoryd.connect(tmp_path, daemon="require", socket=tmp_path / "none.sock"):
            pass
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/" + "x" * 200)  # no socket has so long a path: no daemon, and no error
    async with memoryd.connect(tmp_path) as rt:
        assert isinstance(rt, memoryd.Runtime)
    (tmp_path / "stale.sock").write_text("")
    async with memoryd.connect(tmp_path, socket=tmp_path / "stale.sock") as rt:
        assert not is_daemon(rt)


async def test_with_a_daemon_it_is_a_client(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=QUIET) as daemon, memoryd.scope(user="ada", session="s"):
        async with memoryd.connect(daemon.home, socket=daemon.path) as rt:
            assert is_daemon(rt) and (await rt.status()).pid == daemon.pid
            rt.sync_turn("through the daemon", "ok")
        async with memoryd.connect(daemon.home, daemon="never", socket=daemon.path) as rt:
            assert not is_daemon(rt)
            await rt.catch_up(30)
            assert [hit.text for hit in await rt.recall("daemon")] == ["through the daemon"]
        async with memoryd.connect(daemon.home, config={"recall.budget_chars": 500}, socket=daemon.path) as rt:
            assert not is_daemon(rt)  # the daemon would answer by another configuration
        async with memoryd.connect(daemon.home, config={"logging.level": "error"}, socket=daemon.path) as rt:
            assert is_daemon(rt)
        async with memoryd.connect(tmp_path / "another home", socket=daemon.path) as rt:
            assert rt.home == tmp_path / "another home"
            await rt.store("k", "here")
        async with memoryd.connect(daemon.home, socket=daemon.path) as rt:
            assert await rt.list_keys() == []  # nothing of another home is seen
        with pytest.raises(KeyError):
            async with memoryd.connect(daemon.home, socket=daemon.path):
                raise KeyError("an error of the body leaves it as it is")


async def test_a_daemon_that_stands_still_is_as_good_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Lasting, "_opening", 0.3)
    with Daemon(tmp_path, config=QUIET) as daemon:
        daemon.signal(signal.SIGSTOP)
        async with memoryd.connect(daemon.home, socket=daemon.path) as rt:
            assert not is_daemon(rt)
        with pytest.raises(DaemonUnavailable, match="does not answer"):
            async with memoryd.connect(daemon.home, daemon="require", socket=daemon.path):
                pass


async def test_when_the_daemon_dies_this_process_goes_on(tmp_path: Path, short: None) -> None:
    with Daemon(tmp_path, config=QUIET) as daemon, memoryd.scope(user="ada", session="s"):
        async with memoryd.connect(daemon.home, socket=daemon.path) as rt:
            accepted = [rt.sync_turn("zebra 0", "ok")]
            await rt.store("k", "v")
            daemon.kill()
            accepted += [rt.sync_turn(f"zebra {n}", "ok") for n in range(1, 10)]
            assert await rt.retrieve("k") is not None  # taken over within the call
            accepted.append(rt.sync_turn("zebra 10", "ok"))
            assert accepted[-1].state == "journaled"
            settled = [await rt.settled(one, 30) for one in accepted]
            assert [one.state for one in settled] == ["journaled"] * 11
            assert [one.event_id for one in settled] == [one.event_id for one in accepted]
            assert (await rt.store("k", "w")).applied
            assert len(await rt.recall("zebra", 20)) == 11
            assert (await rt.status()).pid == os.getpid()
            assert (await rt.verify(on_progress=lambda done, total: None)).ok
            assert rt.dead_letters() == []
            rt.queue_prefetch("zebra")
            assert "zebra" in (await rt.prefetch("zebra")).text
    assert list(logged(daemon.home).values()) == [f"zebra {n}" for n in range(11)]


async def test_turns_alone_are_taken_over_too(tmp_path: Path, short: None) -> None:
    """A host that only records makes no call that would notice."""
    with Daemon(tmp_path, config=QUIET) as daemon, memoryd.scope(user="ada", session="s"):
        async with memoryd.connect(daemon.home, socket=daemon.path) as rt:
            rt.sync_turn("zebra 0", "ok")
            daemon.kill()
            first = rt.sync_turn("zebra 1", "ok")
            with trio.fail_after(60):
                count = 2
                while rt.sync_turn(f"zebra {count}", "ok").state == "held":
                    count += 1
                    await trio.sleep(0.01)
            assert (await rt.settled(first, 30)).state == "journaled"
    assert list(logged(daemon.home).values()) == [f"zebra {n}" for n in range(count + 1)]


async def test_at_the_end_what_is_held_is_taken_over(tmp_path: Path, short: None) -> None:
    with Daemon(tmp_path, config=QUIET) as daemon, memoryd.scope(user="ada", session="s"):
        async with memoryd.connect(daemon.home, socket=daemon.path) as rt:
            daemon.kill()
            for n in range(5):
                assert rt.sync_turn(f"zebra {n}", "ok").state == "held"
    assert list(logged(daemon.home).values()) == [f"zebra {n}" for n in range(5)]


async def test_a_stopped_daemon_that_goes_on_doubles_nothing(tmp_path: Path, short: None) -> None:
    """It has the requests in its socket when this process takes over."""
    with Daemon(tmp_path, config=QUIET) as daemon, memoryd.scope(user="ada", session="s"):
        async with memoryd.connect(daemon.home, socket=daemon.path) as rt:
            await rt.settled(rt.sync_turn("zebra 0", "ok"), 30)
            await rt.drain()
            await rt.flush()
            await trio.sleep(0.5)  # it is idle: stopped inside a transaction it would hold the log's lock, and all would be held
            daemon.signal(signal.SIGSTOP)
            held = [rt.sync_turn(f"zebra {n}", "ok") for n in range(1, 6)]
            assert {(await rt.settled(one, 60)).state for one in held} == {"journaled"}
            daemon.signal(signal.SIGCONT)
            with daemon.client() as raw:  # it has read what was in its sockets when it answers
                raw.call("ping")
            assert (await rt.status()).pid == os.getpid()
        daemon.stop()
    assert sorted(logged(daemon.home).values()) == [f"zebra {n}" for n in range(6)]


async def test_a_daemon_that_stands_still_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recall comes late, a checkpoint inside its deadline: neither needs the daemon."""
    monkeypatch.setattr("memoryd.client._attempts._SLACK", 0.3)
    deadlines = "[deadlines]\nrecall = 0.3\ncheckpoint = 2.0\n"
    with Daemon(tmp_path, config=QUIET + deadlines) as daemon, memoryd.scope(user="ada", session="s"):
        async with memoryd.connect(daemon.home, socket=daemon.path) as one, memoryd.connect(daemon.home, socket=daemon.path) as two:
            await one.settled(one.sync_turn("zebra", "ok"), 30)
            await one.drain()
            await one.flush()
            await trio.sleep(0.5)
            daemon.signal(signal.SIGSTOP)
            assert [hit.text for hit in await one.recall("zebra")] == ["zebra"]
            assert (await two.checkpoint([{"role": "user", "content": "x"}])).verdict == "archived"
            assert (await one.status()).pid == (await two.status()).pid == os.getpid()


async def test_what_no_frame_can_hold_is_archived_here(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=QUIET + "[daemon]\nframe_bytes = 65536\n") as daemon, memoryd.scope(user="ada", session="s"):
        async with memoryd.connect(daemon.home, socket=daemon.path) as rt:
            receipt = await rt.checkpoint([{"role": "user", "content": "x" * 100_000}])
            assert receipt.verdict == "archived"
            assert [info.id for info in await rt.checkpoints()] == [receipt.id]


def test_fingerprints_tell_configurations_apart() -> None:
    plain = memoryd.Config()
    assert config_fingerprint(plain) == config_fingerprint(memoryd.Config())
    assert config_fingerprint(plain) != config_fingerprint(memoryd.Config(backend="null"))


# -- commands ---------------------------------------------------------------------------------------------------------------


def run(daemon: Daemon, *arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MEMORYD_SOCKET": str(daemon.path), "MEMORYD_HOME": str(daemon.home), **variables}
    command = [sys.executable, "-m", "memoryd", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False, env=environment)


def test_commands_go_through_the_daemon(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        assert run(daemon, "store", "city", "Oslo", "--require-daemon").returncode == 0
        assert run(daemon, "get", "city").stdout == "Oslo\n"
        answer = run(daemon, "turn", "--session", "s", stdin='{"user": "I live in Oslo"}\n{"user": ""}\n')
        assert [json.loads(line).get("state") for line in answer.stdout.splitlines()] == ["journaled", None]
        assert answer.returncode == 1
        assert json.loads(run(daemon, "status", "--json").stdout)["pid"] == daemon.pid
        assert json.loads(run(daemon, "status", "--json", MEMORYD_DAEMON_USE="never").stdout)["pid"] != daemon.pid
        assert json.loads(run(daemon, "status", "--json", MEMORYD_LANGUAGE="none").stdout)["pid"] != daemon.pid
        wrong = run(daemon, "get", "", "--json")
        assert (wrong.returncode, json.loads(wrong.stdout)["error"]["type"]) == (1, "InvalidInput")
        daemon.stop()
        assert run(daemon, "get", "city").stdout == "Oslo\n"
        missing = run(daemon, "get", "city", "--require-daemon")
        assert missing.returncode == 1 and "memoryd serve" in missing.stderr and missing.stderr.count("\n") == 1
        assert run(daemon, "get", "city", MEMORYD_DAEMON_USE="require").returncode == 1
