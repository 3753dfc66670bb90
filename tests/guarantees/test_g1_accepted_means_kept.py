"""G1: accepted means kept.  The kill tests are in tests/crash; here are the four states and every way a process can end."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import trio

import memoryd
from memoryd.blocking import Memory
from memoryd.errors import (
    BarrierFailed,
    ClosedError,
    InvalidInput,
    JournalUnavailable,
    NotDurable,
    ScopeMissing,
    StoreBroken,
)
from memoryd.store import Options, connect, open_profile, wal_path
from memoryd.testing import CrashChild, Fault, FaultyVFS


def log_path(home: Path) -> Path:
    return open_profile(home, "default").directory / "log.db"


def recalled(home: Path, query: str) -> list[str]:
    with Memory(home) as memory, memoryd.scope(user="ada"):
        memory.catch_up(10)
        return [hit.text for hit in memory.recall(query) if query in hit.text]


async def test_journaled_is_committed_when_the_call_returns(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            accepted = rt.sync_turn("hello", "hi")
        assert accepted.state == "journaled"
        reader = connect(log_path(tmp_path), Options(readonly=True))
        assert reader.all("SELECT seq FROM event") == [(accepted.seq,)]
        reader.close()


async def test_a_locked_log_holds_and_takes_it_as_soon_as_it_can(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            other = connect(log_path(tmp_path), Options())
            with other.transaction("IMMEDIATE"):
                held = rt.sync_turn("while locked", "ok")
                assert (held.state, held.seq) == ("held", None)
                assert (await rt.status()).log.held == 1  # type: ignore[union-attr]
                with pytest.raises(NotDurable):
                    await rt.flush(0.1)
            other.close()
            settled = await rt.settled(held, 5)
            assert (settled.state, settled.event_id) == ("journaled", held.event_id)
            await rt.flush()
            assert [hit.text for hit in await rt.recall("while locked")] == ["while locked"]


async def test_what_is_held_at_close_survives(tmp_path: Path) -> None:
    config = {"deadlines": {"close": 0.3}}
    other = None
    async with memoryd.open_runtime(tmp_path, config=config) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("first", "ok")
            other = connect(log_path(tmp_path), Options())
            other.run("BEGIN IMMEDIATE")
            assert rt.sync_turn("zebra held at close", "ok").state == "held"
    other.close()
    assert await trio.to_thread.run_sync(recalled, tmp_path, "zebra") == ["zebra held at close"]


async def test_a_full_disk_refuses_loudly_and_recovers_alone(tmp_path: Path) -> None:
    with FaultyVFS("g1-full") as disk:
        async with memoryd.open_runtime(tmp_path, vfs=disk.name) as rt:
            with memoryd.scope(user="ada", session="s1"):
                rt.sync_turn("before", "ok")
                await rt.drain()
                disk.arm(Fault("write", "ENOSPC", lasting=True))
                with pytest.raises(JournalUnavailable) as caught:
                    rt.sync_turn("refused", "ok")
                assert caught.value.reason == "full"
                assert (await rt.status()).state == "degraded"
                disk.heal()
                assert rt.sync_turn("after", "ok").state == "journaled"
                assert [hit.text for hit in await rt.recall("before refused after")] == ["after", "before"]
                log = (await rt.status()).log
                assert log is not None
                assert (log.refused, log.state) == (1, "ok")


@pytest.mark.parametrize("what", ["the home", "the write-ahead log"])
async def test_a_log_that_was_removed_while_it_is_open_takes_no_turn(tmp_path: Path, what: str) -> None:
    with pytest.raises(BarrierFailed):  # closing says it once more
        async with memoryd.open_runtime(tmp_path / "home") as rt:
            with memoryd.scope(user="ada", session="s1"):
                rt.sync_turn("before", "ok")
                await rt.drain()
                if what == "the home":
                    shutil.rmtree(tmp_path / "home")
                else:
                    wal_path(log_path(tmp_path / "home")).unlink()
                with pytest.raises(NotDurable):
                    await rt.flush()
                with pytest.raises(JournalUnavailable) as caught:
                    rt.sync_turn("after", "ok")
                assert caught.value.reason == "missing"
                with pytest.raises(StoreBroken):
                    await rt.forget(everything=True)
                assert (await rt.status()).state in ("degraded", "broken")
    async with memoryd.open_runtime(tmp_path / "home") as rt:
        with memoryd.scope(user="ada", session="s1"):
            assert rt.sync_turn("again", "ok").state == "journaled"


async def test_off_is_said_for_private_and_null(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1", private=True):
            assert (rt.sync_turn("secret", "ok").state, rt.sync_turn("secret", "ok").reason) == ("off", "private")
    async with memoryd.open_runtime(tmp_path / "null", config={"backend": "null"}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            assert rt.sync_turn("hello", "ok").state == "off"


async def test_flush_makes_everything_power_safe(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path, config={"log": {"barrier_ms": 60_000}}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            accepted = rt.sync_turn("hello", "ok")
            await rt.flush()
            log = (await rt.status()).log
            assert log is not None
            assert log.synced == accepted.seq
            assert log.power_safe


async def test_a_closed_runtime_refuses(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        pass
    with memoryd.scope(user="ada", session="s1"), pytest.raises(ClosedError):
        rt.sync_turn("late", "ok")


@pytest.mark.parametrize("ending", ["pass", "sys.exit(3)", "raise ValueError('x')", "os._exit(0)", "os.kill(os.getpid(), 15)"])
def test_every_way_a_process_ends(tmp_path: Path, ending: str) -> None:
    """Without a close: at the end of the program, exit, an error, no clean-up at all, a signal."""
    script = f"""
import os, sys, memoryd
from memoryd.blocking import Memory
memory = Memory({str(tmp_path)!r})
with memoryd.scope(user="ada", session="s1"):
    print(memory.sync_turn("zebra at the end", "ok").state, flush=True)
{ending}
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "journaled\n", done.stderr
    assert recalled(tmp_path, "zebra") == ["zebra at the end"]


def test_held_at_interpreter_exit_goes_to_the_spool(tmp_path: Path) -> None:
    script = """
import sys, memoryd
from pathlib import Path
from memoryd.blocking import Memory
from memoryd.store import Options, connect, open_profile, wal_path
memory = Memory(sys.argv[1], config={"deadlines": {"exit": 0.2}})
other = connect(open_profile(Path(sys.argv[1]), "default").directory / "log.db", Options())
other.run("BEGIN IMMEDIATE")
with memoryd.scope(user="ada", session="s1"):
    print(memory.sync_turn("zebra held at exit", "ok").state, flush=True)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "held\n", done.stderr
    assert recalled(tmp_path, "zebra") == ["zebra held at exit"]


BAD_TURNS = [
    ("user", {"user": 7, "assistant": "x"}),
    ("assistant", {"user": "x", "assistant": None}),
    ("turn", {"user": "", "assistant": ""}),
    ("turn_id", {"user": "x", "assistant": "y", "turn_id": ""}),
    ("turn_id", {"user": "x", "assistant": "y", "turn_id": "x" * 501}),
    ("messages", {"user": "x", "assistant": "y", "messages": "text"}),
    ("created_at", {"user": "x", "assistant": "y", "created_at": "yesterday"}),
    ("created_at", {"user": "x", "assistant": "y", "created_at": float("nan")}),
    ("created_at", {"user": "x", "assistant": "y", "created_at": -1}),
]


@pytest.mark.parametrize(("field", "arguments"), BAD_TURNS)
async def test_a_bad_turn_names_the_field_and_writes_nothing(tmp_path: Path, field: str, arguments: dict[str, object]) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            with pytest.raises(InvalidInput) as caught:
                rt.sync_turn(**arguments)  # type: ignore[arg-type]  # wrong on purpose
            assert caught.value.field == field
        with memoryd.scope(user="ada"), pytest.raises(ScopeMissing):
            rt.sync_turn("x", "y")
        assert (await rt.status()).log.head == 0  # type: ignore[union-attr]


HOSTILE = ["", "\0", "a\0b", "\ud800", "\udc88 lone", "e\u0301", "👩‍👩‍👧‍👦 family", "שלום עולם", "中文的句子", 'a" OR b* NEAR(', "x" * 10_000_000]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_any_text_is_kept_as_it_is(tmp_path: Path, text: str) -> None:
    async with memoryd.open_runtime(tmp_path, config={"deadlines": {"recall": 20, "drain": 30}}) as rt:
        with memoryd.scope(user="ada", session="s1"):
            accepted = rt.sync_turn(text, "marker word")
            assert await rt.drain()
            found = await rt.recall("marker")
            assert [hit.id for hit in found] == [accepted.event_id]
            whole = await rt.find(accepted.event_id)
            assert whole is not None
        from memoryd.journal import Journal, Limits  # the stored event itself, byte for byte

        journal = Journal(open_profile(tmp_path, "default"), Limits())
        event = journal.read(0)[0].event
        journal.close()
        assert event.user == text  # type: ignore[union-attr]


def test_a_kill_between_two_barriers_loses_nothing(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(
        "import sys, trio, memoryd\n"
        "async def main():\n"
        "    async with memoryd.open_runtime(sys.argv[1], config={'log': {'barrier_ms': 60000}}) as rt:\n"
        "        with memoryd.scope(user='ada', session='s1'):\n"
        "            for n in range(100): print(rt.sync_turn(f'zebra{n}', 'ok').state, flush=True)\n"
        "            await trio.sleep_forever()\n"
        "trio.run(main)\n"
    )
    with CrashChild([script, tmp_path / "home"]) as child:
        child.wait_for(100)
        assert set(child.kill()) == {"journaled"}
    assert recalled(tmp_path / "home", "zebra99") == ["zebra99"]
