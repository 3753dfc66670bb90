"""Records: where they go, how they are shown, and that no text of a user is ever in one."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

import memoryd as library
from memoryd.core import Event
from memoryd.errors import CheckpointBlocked, MemorydError
from memoryd.log import Log, LogFile
from memoryd.store import Options, connect, profile_directory
from memoryd.testing import FakeRemote, Fault, FaultyVFS, RemoteFault, registered

SECRET = "heliotrope"


def some_records(path: Path) -> None:
    log = Log("debug", "auto", path, "work")
    log.info("journal.opened", count=1)
    log.warning("delivery.waits", backend="far", seconds=2)
    log.error("journal.not_open", error="StoreBroken")


def test_they_go_to_a_private_file_and_are_shown(memoryd: Any, private_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_LOGGING_FILE", "logs/memoryd.log")
    path = private_home / "logs/memoryd.log"
    assert memoryd("logs").out == ""
    some_records(path)
    assert [stat.S_IMODE(os.stat(place).st_mode) for place in (path, path.parent)] == [0o600, 0o700]
    shown = memoryd("logs").out.splitlines()
    assert [line.split("  ")[1:3] for line in shown] == [
        ["info", "journal.opened"], ["warning", "delivery.waits"], ["error", "journal.not_open"],
    ]  # fmt: skip
    assert "backend=far" in shown[1]
    assert [record["event"] for record in memoryd("logs", "--json", "--area", "journal").lines] == ["journal.opened", "journal.not_open"]
    assert [record["level"] for record in memoryd("logs", "--json", "--level", "warning").lines] == ["warning", "error"]
    assert [record["error"] for record in memoryd("logs", "--json", "--tail", "1").lines] == ["StoreBroken"]
    assert memoryd("logs", "--tail", "0").out == ""


def test_without_a_file_it_says_which_key_to_set(memoryd: Any) -> None:
    done = memoryd("logs")
    assert (done.code, "logging.file" in done.err) == (64, True)


def test_following_goes_on_in_the_file_that_begins_anew(private_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_LOGGING_FILE", "m.log")
    path = private_home / "m.log"
    some_records(path)
    command = [sys.executable, "-m", "memoryd", "logs", "--follow", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follow:
        assert follow.stdout is not None

        def next_event() -> str:
            assert follow.stdout is not None
            return str(json.loads(follow.stdout.readline())["event"])

        assert [next_event() for _ in range(3)] == ["journal.opened", "delivery.waits", "journal.not_open"]
        os.replace(path, path.with_name("m.log.1"))
        some_records(path)
        assert [next_event() for _ in range(3)] == ["journal.opened", "delivery.waits", "journal.not_open"]
        follow.send_signal(signal.SIGINT)
        _, error = follow.communicate(timeout=60)
        assert (follow.returncode, error) == (130, b"")


def test_a_file_that_grows_large_is_kept_and_begun_anew_by_any_number_of_writers(tmp_path: Path) -> None:
    files = [LogFile(tmp_path / "m.log") for _ in range(3)]
    line = "x" * 99_999 + "\n"
    for number in range(60):
        files[number % 3].write(line)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.log", "m.log.1"]
    assert (tmp_path / "m.log").stat().st_size + (tmp_path / "m.log.1").stat().st_size == 60 * 100_000


def test_where_the_file_cannot_be_written_records_go_to_stderr(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in-the-way").touch()
    Log("info", "auto", tmp_path / "in-the-way/m.log").info("journal.opened")
    assert json.loads(capfd.readouterr().err)["event"] == "journal.opened"


# -- a whole run, at the level debug, with everything going wrong ------------------------------------------------------------


async def bad_day(home: Path, disk: FaultyVFS, config: dict[str, Any]) -> list[str]:
    """Turns, stores, recalls, checkpoints and forgets, with faults of disk, backend and caller; gives the errors that were raised."""
    raised: list[str] = []
    remote = FakeRemote("far", plan=[RemoteFault("transient"), RemoteFault("lost"), RemoteFault("bug")], rejects=careless)
    with registered("far", lambda context: remote):
        async with library.open_runtime(home, config={**config, "mirrors": ["far"]}, vfs=disk.name, on_bug="contain") as rt:
            with library.scope(user="ada", session="s1"):
                rt.sync_turn(f"the word is {SECRET}", f"{SECRET} it is", messages=[{"role": "user", "content": SECRET}])
                await rt.store("word", SECRET, {"note": SECRET})
                rt.queue_prefetch(SECRET)
                await rt.prefetch(SECRET)
                await rt.recall(SECRET)
                await rt.checkpoint([{"role": "user", "content": SECRET}, f"{SECRET} in an odd row", SECRET.encode()])
                for call in (
                    lambda: rt.edit("00" * 16, SECRET), lambda: rt.store("", SECRET), lambda: rt.recall(SECRET, -1),
                    lambda: rt.checkpoint({"content": SECRET}), lambda: rt.restore("00" * 16), lambda: rt.forget(key=SECRET),
                ):  # fmt: skip
                    raised += await error_of(call)
                await faults_of_the_disk(rt, disk, raised)
                with trio.move_on_after(5):
                    while not (await rt.status()).backends[1].last_error:
                        await trio.sleep(0.02)
                await rt.forget(key="word")
            repr(await rt.status())
    return raised


def careless(event: Event) -> bool:
    """A stranger's code that puts what it was given into its error."""
    raise ValueError(f"cannot take {SECRET}, {event!r}")


async def error_of(call: Any) -> list[str]:
    try:
        await call()
    except MemorydError as error:
        return [str(error)]
    return []


async def faults_of_the_disk(rt: library.Runtime, disk: FaultyVFS, raised: list[str]) -> None:
    disk.arm(Fault("write", "EIO", lasting=True))
    try:
        rt.sync_turn(f"{SECRET} on a bad disk", "ok")
    except MemorydError as error:
        raised.append(str(error))
    try:
        await rt.checkpoint([{"role": "user", "content": f"{SECRET} on a bad disk"}])
    except CheckpointBlocked as error:
        raised.append(str(error))
    await trio.sleep(0.3)
    disk.heal()
    other = connect(profile_directory(rt.home, "default") / "log.db", Options())
    with other.transaction("IMMEDIATE"):
        rt.sync_turn(f"{SECRET} while locked", "ok")
        await trio.sleep(0.05)
    other.close()


@pytest.mark.parametrize("to_file", [False, True])
async def test_no_record_error_or_receipt_of_a_bad_day_holds_a_text(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], to_file: bool
) -> None:
    config = {"logging": {"level": "debug", "format": "json", "file": "m.log" if to_file else ""}, "delivery": {"backoff_min": 0.01}}
    with FaultyVFS("bad-day") as disk:
        raised = await bad_day(tmp_path, disk, config)
        memory = profile_directory(tmp_path, "default") / "memory.db"
        memory.write_bytes(b"\xa5" * memory.stat().st_size)
        raised += await bad_day(tmp_path, disk, config)
    assert len(raised) > 8
    out, err = capfd.readouterr()
    told = (tmp_path / "m.log").read_text("utf-8") if to_file else err
    names = {json.loads(line)["event"] for line in told.splitlines()}
    wanted = {"runtime.opened", "runtime.closed", "gate.allowed", "gate.refused", "delivery.waits", "backend.not_open", "runtime.child_crashed"}
    assert wanted <= names, names
    receipts = (profile_directory(tmp_path, "default") / "gate.receipts.jsonl").read_text("utf-8")
    assert '"refused"' in receipts
    assert out == ""
    assert err == "" or not to_file
    for text in (told, receipts, *raised):
        assert SECRET not in text


def test_nor_does_a_command_at_any_level(memoryd: Any, private_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_LOGGING_LEVEL", "debug")
    monkeypatch.setenv("MEMORYD_LOGGING_FILE", "m.log")
    memoryd("turn", "--session", "s", stdin=json.dumps({"user": SECRET, "assistant": SECRET}))
    memory = profile_directory(private_home, "default") / "memory.db"
    memory.write_bytes(os.urandom(memory.stat().st_size))
    for arguments in (("recall", SECRET), ("get", SECRET), ("store", "k", SECRET)):
        done = memoryd(*arguments)
        assert SECRET not in done.err
    assert "backend.not_open" in (told := (private_home / "m.log").read_text("utf-8"))
    assert SECRET not in told
