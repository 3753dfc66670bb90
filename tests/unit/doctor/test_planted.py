"""Faults that are planted: doctor finds each of them, says so once, and names what to do about it."""

from __future__ import annotations

import json
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

import memoryd
from memoryd.core import BackendStatus, Config, GateStatus, LogStatus, Status
from memoryd.doctor import examine, state_of
from memoryd.doctor._disk import disk, file_system, permissions
from memoryd.doctor._living import living
from memoryd.doctor._machine import sqlite
from memoryd.hosts import Check
from memoryd.journal import Journal, Limits, Outbox
from memoryd.store import Connection, Options, connect, open_profile, profile_directory, wal_size
from memoryd.testing import CrashChild
from memoryd.testing.honcho import HonchoServer

Plant = Callable[[Path, Path], object]
MONTHS = 100 * 24 * 3600


async def filled(home: Path, **turn: Any) -> Path:
    """A home with a little of everything; gives the profile's directory."""
    async with memoryd.open_runtime(home) as rt:
        with memoryd.scope(user="ada", session="s1"):
            for n in range(30):
                rt.sync_turn(f"zebra {n} " * 40, "Noted.", **turn)
            await rt.store("city", "Oslo")
            await rt.checkpoint([{"role": "user", "content": f"zebra {n} " * 40} for n in range(30)])
            await rt.drain()
    return profile_directory(home, "default")


async def found_in(home: Path, *profiles: str) -> list[Check]:
    return [finding.check async for finding in examine(home, profiles or ("default",))]


def troubles(checks: list[Check]) -> dict[str, Check]:
    bad = [check for check in checks if check.state in ("warn", "fail")]
    assert all(check.remedy and check.said for check in bad)
    return {check.name: check for check in bad}


@contextmanager
def opened(path: Path) -> Iterator[Connection]:
    connection = connect(path, Options())
    try:
        yield connection
    finally:
        connection.close()


def garbage(store: str, step: int = 1) -> Plant:
    def plant(home: Path, directory: Path) -> None:
        path = directory / store
        data = bytearray(path.read_bytes())
        for offset in range(4096, len(data), 4096 * step):
            data[offset : offset + 64] = b"\xa5" * 64
        path.write_bytes(bytes(data))

    return plant


def sql(store: str, statement: str, *values: object) -> Plant:
    def plant(home: Path, directory: Path) -> None:
        with opened(directory / store) as connection:
            connection.run(statement, values)

    return plant


def config_file(text: str) -> Plant:
    return lambda home, directory: (home / "memoryd.toml").write_text(text)


def old_copy(home: Path, directory: Path) -> None:
    copy = directory / "log.db.v1.backup"
    copy.touch(0o600)
    os.utime(copy, (time.time() - MONTHS, time.time() - MONTHS))


def dead_letter(home: Path, directory: Path) -> None:
    journal = Journal(open_profile(home, "default"), Limits())
    Outbox(journal).bury("local", 1, "TooLarge", 1)
    journal.close()


def spooled_garbage(home: Path, directory: Path) -> None:
    (directory / "spool").mkdir(mode=0o700)
    (directory / "spool/1-ab.held").write_bytes(b"\x00\x00\x00\x10garbage")
    (directory / "spool/1-ab.held").chmod(0o600)


def plugin(home: Path, directory: Path) -> None:
    (home / "plugins").mkdir(mode=0o700)
    (home / "plugins/NotAName.py").touch(0o600)


def unread_hooks(home: Path, directory: Path) -> None:
    (home / "hooks.quarantine").mkdir(mode=0o700)
    (home / "hooks.quarantine/1").touch(0o600)


def another_owner(home: Path, directory: Path) -> None:
    identity = directory / "profile.json"
    identity.write_text(json.dumps({**json.loads(identity.read_bytes()), "name": "somebody"}))


def another_instance(home: Path, directory: Path) -> None:
    identity = directory / "profile.json"
    identity.write_text(json.dumps({**json.loads(identity.read_bytes()), "instance": "0" * 32}))


FAULTS: dict[str, tuple[Plant, str, str, str]] = {
    "a file that others can read": (lambda home, d: (d / "memory.db").chmod(0o644), "permissions", "warn", "chmod -R go-rwx"),
    "a directory that others can read": (lambda home, d: d.chmod(0o755), "permissions", "warn", "chmod -R go-rwx"),
    "a file of another user": (lambda home, d: os.chown(d / "gate.json", 12345, -1), "permissions", "fail", "chown"),
    "no room": (config_file("store.free_floor = 1000000000000000"), "disk-space", "fail", "free some space"),
    "a setting that is none": (config_file('gate.mod = "warn"'), "configuration", "fail", "memoryd config check"),
    "a second primary": (config_file('backend = ["local", "honcho"]'), "configuration", "warn", "memoryd config check"),
    "no such backend": (config_file('mirrors = ["nowhere"]'), "backend nowhere", "fail", "install it"),
    "a backend without its settings": (config_file('mirrors = ["honcho"]\n[backends.honcho]\nurl = 5'), "backend honcho", "fail", "mend [backends.honcho]"),
    "calls of hooks that wait": (lambda home, d: (home / "hooks.spool").write_bytes(b"\0"), "hooks", "warn", "memoryd status takes them in"),
    "calls of hooks that cannot be read": (unread_hooks, "hooks", "warn", "memoryd install all"),
    "a plug-in that is none": (plugin, "plugin", "warn", "mend it or move it away"),
    "a damaged log": (garbage("log.db"), "log", "fail", "memoryd repair"),
    "an event that cannot be read": (sql("log.db", "UPDATE event SET payload = x'c1' WHERE seq = 3"), "log", "fail", "memoryd repair"),
    "an event without an id": (sql("log.db", "UPDATE event SET event_id = x'' WHERE seq = 3"), "log", "fail", "memoryd repair"),
    "an event of no time": (sql("log.db", "UPDATE event SET at = 'noon' WHERE seq = 3"), "log", "fail", "memoryd repair"),
    "a damaged memory": (garbage("memory.db"), "memory", "fail", "memoryd repair"),
    "a memory that is no database": (lambda home, d: (d / "memory.db").write_bytes(b"\xa5" * 8192), "memory", "fail", "memoryd repair"),
    "a damaged index": (sql("memory.db", "DELETE FROM fts_data WHERE id > 10"), "memory", "fail", "memoryd repair"),
    "a damaged archive": (garbage("archive.db"), "archive", "fail", "memoryd repair"),
    "archived bytes that changed": (sql("archive.db", "UPDATE pack SET data = zeroblob(length(data))"), "checkpoints", "fail", "repair"),
    "a clock that was set back": (lambda home, d: os.utime(d / "log.db", (time.time() + 9999,) * 2), "clock", "warn", "set the clock"),
    "dead letters": (dead_letter, "dead-letters", "warn", "memoryd dead"),
    "a damaged spool file": (spooled_garbage, "spool", "warn", "delete it when"),
    "an old copy": (old_copy, "old-copies", "warn", "delete them"),
    "a gate that is off": (config_file('gate.mode = "off"'), "gate", "warn", "gate.mode"),
    "a log of a newer program": (sql("log.db", "PRAGMA user_version = 99"), "opening", "fail", "upgrade memoryd"),
    "a memory of a newer program": (sql("memory.db", "PRAGMA user_version = 99"), "health local", "fail", "upgrade memoryd"),
    "a store of another instance": (another_instance, "opening", "fail", "memoryd profiles rekey"),
    "a profile of another name": (another_owner, "profile", "fail", "profiles rekey"),
    "a profile without its key": (lambda home, d: (d / "profile.key").unlink(), "profile", "fail", "restore"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_planted_fault_is_found_and_its_remedy_named(tmp_path: Path, fault: str) -> None:
    directory = await filled(tmp_path)
    (directory / "gate.json").touch(0o600)
    plant, name, state, remedy = FAULTS[fault]
    plant(tmp_path, directory)
    found = troubles(await found_in(tmp_path))
    assert name in found, found
    assert found[name].state == state
    assert remedy in found[name].remedy


def test_what_others_can_read_is_counted_by_its_kind(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert permissions(tmp_path).said == f"1 directory can be read by other users: {tmp_path}"
    for name in ("a", "b"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    assert permissions(tmp_path).said == f"2 files and 1 directory can be read by other users, such as {tmp_path}"


async def test_a_refused_session_is_named_with_the_cause_of_its_own_refusal(tmp_path: Path) -> None:
    directory = await filled(tmp_path)
    (directory / "gate.json").write_text('{"released": {}, "refusals": {"s1": 1, "s2": 2}}')
    (directory / "gate.json").chmod(0o600)
    decided = [("s2", "refused", "full"), ("s1", "refused", "locked"), ("s2", "warned", ""), ("s3", "archived", "")]
    lines = [json.dumps(dict(zip(("session", "verdict", "cause"), one, strict=True))) + "\n" for one in decided]
    (directory / "gate.receipts.jsonl").write_text("".join(lines))
    found = troubles(await found_in(tmp_path))["gate"]
    assert "2 (s2: 2 in a row, cause full" in found.said
    assert "gate release" in found.remedy


async def test_where_all_is_well_nothing_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    directory = await filled(tmp_path)
    before = {path for path in tmp_path.rglob("*") if not path.name.endswith(("-wal", "-shm", ".lock"))}
    head = Journal(open_profile(tmp_path, "default"), Limits())
    seq = head.last_seq
    head.close()
    checks = await found_in(tmp_path)
    assert troubles(checks) == {}
    assert state_of(checks) == "ok"
    assert {"write-and-read", "fsync", "health local", "checkpoints", "log"} <= {check.name for check in checks}
    assert {path for path in tmp_path.rglob("*") if not path.name.endswith(("-wal", "-shm", ".lock"))} == before
    after = Journal(open_profile(tmp_path, "default"), Limits())
    assert after.last_seq == seq
    after.close()
    assert directory.exists()


async def test_a_home_that_is_not_there_stays_so(tmp_path: Path) -> None:
    checks = await found_in(tmp_path / "home")
    assert troubles(checks) == {}
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("home", ["file", "file/home", "/proc/home"])
async def test_a_home_that_cannot_be(tmp_path: Path, home: str) -> None:
    (tmp_path / "file").touch()
    found = troubles(await found_in(tmp_path / home))
    assert list(found) == ["home"]
    assert "MEMORYD_HOME" in found["home"].remedy
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


async def test_every_profile_and_a_broken_one_hides_no_other(tmp_path: Path) -> None:
    for name in ("a", "b"):
        async with memoryd.open_runtime(tmp_path, name) as rt:
            with memoryd.scope(user="u", session="s"):
                rt.sync_turn("x", "y")
    (profile_directory(tmp_path, "a") / "profile.key").unlink()
    nameless = tmp_path / "profiles/abcdefghijklmnopqrstuvwxyz"
    nameless.mkdir(mode=0o700)
    (nameless / "profile.json").touch(0o600)
    found = [finding async for finding in examine(tmp_path)]
    states = {name: state_of(f.check for f in found if f.profile == name) for name in {f.profile for f in found} - {""}}
    assert states == {"a": "broken", "b": "ok", nameless.name: "broken"}


async def test_events_of_the_future_are_found(tmp_path: Path) -> None:
    await filled(tmp_path, created_at=time.time() + MONTHS)
    found = troubles(await found_in(tmp_path))
    assert "30 events" in found["future-events"].said
    assert "memoryd forget" in found["future-events"].remedy


async def test_a_service_that_takes_in_and_derives_nothing(tmp_path: Path) -> None:
    with HonchoServer() as honcho:
        honcho.modes.worker = False
        (tmp_path / "memoryd.toml").write_text(f'mirrors = ["honcho"]\n[backends.honcho]\nurl = "{honcho.url}"\n')
        await filled(tmp_path)
        async with memoryd.open_runtime(tmp_path) as rt:
            with trio.fail_after(120):
                while not (await rt.drain(5)).remote:
                    pass
        found = troubles(await found_in(tmp_path))
        assert "derives nothing now" in found["health honcho"].said
        assert "local recall finds everything" in found["health honcho"].remedy
        honcho.stop()
        found = troubles(await found_in(tmp_path))
        assert "cannot be reached" in found["health honcho"].said
        assert "check its address" in found["health honcho"].remedy


PINNING = """
import sys, time
from pathlib import Path
from memoryd.store import Options, connect
reader = connect(Path(sys.argv[1]), Options(readonly=True))
with reader.transaction("DEFERRED"):
    reader.all("SELECT count(*) FROM event")
    print("reading", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells who holds a lock")
async def test_a_long_reader_that_pins_a_write_ahead_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "pin.py").write_text(PINNING)
    (tmp_path / "memoryd.toml").write_text("log.wal_cap_bytes = 65536\n")
    directory = await filled(tmp_path)
    with CrashChild([tmp_path / "pin.py", directory / "log.db"]) as reader:
        reader.wait_for(1)
        async with memoryd.open_runtime(tmp_path) as rt:
            with memoryd.scope(user="ada", session="s1"):
                while wal_size(directory / "log.db") <= 200_000:
                    rt.sync_turn("zebra " * 4000, "Noted.")
            notes = (await rt.status()).notes
            assert any(f"process {reader.pid} reads" in note and "pins" in note for note in notes), notes
        found = troubles(await found_in(tmp_path))
        assert f"process {reader.pid}" in found["write-ahead-log"].said
        assert f"let process {reader.pid} finish" in found["write-ahead-log"].remedy


HOLDING = PINNING.replace('Options(readonly=True)', 'Options()').replace('"DEFERRED"', '"IMMEDIATE"')


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells who holds a lock")
@pytest.mark.parametrize("store", ["log.db", "memory.db"])
async def test_a_process_that_keeps_a_store_locked_is_named(tmp_path: Path, store: str) -> None:
    directory = await filled(tmp_path)
    (tmp_path / "hold.py").write_text(HOLDING.replace("FROM event", "FROM sqlite_master"))
    with CrashChild([tmp_path / "hold.py", directory / store]) as holder:
        holder.wait_for(1)
        found = troubles(await found_in(tmp_path))
        assert f"process {holder.pid} holds the write lock" in found["locks"].said
        assert f"kill -CONT {holder.pid}" in found["locks"].remedy
        assert all("repair" not in check.remedy for check in found.values()), found


async def test_a_disk_that_cannot_be_written(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        found = troubles(list(disk(tmp_path, Config())))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert found["fsync"].state == "fail"
    assert "check the disk" in found["fsync"].remedy
    assert list(tmp_path.iterdir()) == []


def test_what_the_machine_may_have() -> None:
    assert file_system(Path("/home/u"), "nfs4").remedy == "set MEMORYD_HOME to a directory on a local disk"
    assert file_system(Path("/home/u"), "ext4").state == "ok"
    assert sqlite("3.46.1.0").state == "fail"
    assert "apsw>=3.51.3" in sqlite("3.46.1.0").remedy
    assert sqlite("3.51.3.0").state == "ok"


def a_status(*backends: BackendStatus, log: LogStatus | None = None) -> Status:
    return Status("ok", "default", "/h", "/h/p", log or LogStatus("/h/p/log.db", "ok"), backends, GateStatus("block", "/h/p"))


@pytest.mark.parametrize(
    ("status", "name", "remedy"),
    [
        (a_status(BackendStatus("far", "far", "mirror", "degraded", owner=77, owner_stopped=True)), "delivery far", "kill -CONT 77"),
        (a_status(BackendStatus("far", "far", "mirror", "degraded", backlog=9, oldest_age=3600)), "delivery far", "nothing is lost"),
        (a_status(BackendStatus("local", "local", "primary", "broken", last_error="StoreCorrupt")), "delivery local", "memoryd repair"),
        (a_status(log=LogStatus("/l", "degraded", power_safe=False)), "writing", "check the disk"),
        (a_status(log=LogStatus("/l", "degraded", held=3)), "writing", "end the process"),
        (a_status(log=LogStatus("/l", "degraded", refused=3, last_error="quota")), "writing", "not recorded"),
        (a_status(log=LogStatus("/l", "broken", last_error="StoreBroken")), "writing", "memoryd repair"),
    ],
)
def test_what_a_runtime_says_of_itself(status: Status, name: str, remedy: str) -> None:
    assert remedy in troubles(list(living(status)))[name].remedy


@contextmanager
def listening(answer: bytes) -> Iterator[None]:
    """Something at the daemon's socket that says ``answer`` to whoever speaks."""
    path = Path(os.environ["XDG_RUNTIME_DIR"]) / "memoryd/memoryd.sock"
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            line, _ = listener.accept()
            with line:
                line.recv(4096)
                line.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


@pytest.mark.parametrize(
    ("answer", "state", "remedy"),
    [
        (b'{"jsonrpc":"2.0","id":0,"result":{"server":"memoryd 0.0.1","pid":77}}\n', "warn", "restart it"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "fail", "end the process"),
        (b"", "fail", "end the process"),
        (f'{{"jsonrpc":"2.0","id":0,"result":{{"server":"memoryd {memoryd.__version__}","pid":77}}}}\n'.encode(), "ok", ""),
    ],
)
def test_what_listens_at_the_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: bytes, state: str, remedy: str) -> None:
    from memoryd.doctor._daemon import daemon, see_daemon

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with listening(answer):
        check = daemon(see_daemon())
    assert check.state == state, check
    assert remedy in check.remedy
