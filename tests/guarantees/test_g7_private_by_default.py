"""G7: no network, private files, no text in logs, errors or metrics."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import memoryd
from memoryd.store import Options, connect, open_profile

SCENARIO = """
import sys
calls = []
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind"):
        calls.append(event)
sys.addaudithook(watch)
import trio, memoryd
async def main():
    async with memoryd.open_runtime(sys.argv[1]) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("I like zebras", "Noted.")
            await rt.store("animal", "zebra")
            await rt.recall("zebra")
            await rt.prefetch("zebra")
            receipt = await rt.checkpoint([{"role": "user", "content": "hello"}])
            await rt.restore(receipt.id)
            await rt.forget(everything=True)
            await rt.status()
            await rt.flush()
trio.run(main)
assert not calls, calls
assert "honcho" not in sys.modules
"""


def test_the_default_install_makes_no_network_call(tmp_path: Path) -> None:
    environment = {**os.environ, "HONCHO_API_KEY": "sk-live-key", "OPENAI_API_KEY": "sk-live-key", "HONCHO_URL": "http://127.0.0.1:9"}
    subprocess.run([sys.executable, "-c", SCENARIO, str(tmp_path)], check=True, timeout=60, env=environment)


@pytest.mark.parametrize("umask", [0o022, 0o000, 0o077])
def test_directories_are_0700_and_files_0600(tmp_path: Path, umask: int) -> None:
    script = f"import os; os.umask({umask})\n" + SCENARIO
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "home")], check=True, timeout=60)
    for path in [tmp_path / "home", *(tmp_path / "home").rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path}: {mode:o}"


async def test_files_are_private_while_open(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        async with memoryd.open_runtime(tmp_path) as rt:
            with memoryd.scope(user="ada", session="s1"):
                rt.sync_turn("zebra", "ok")
                await rt.checkpoint([{"role": "user", "content": "x"}])
                await rt.drain()
            names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
            assert {"log.db", "log.db-wal", "log.db-shm", "memory.db-wal", "archive.db-wal"} <= names
            for path in tmp_path.rglob("*"):
                assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    finally:
        os.umask(old)


SECRET = "vertraulich-4711"


def test_no_log_line_and_no_error_holds_a_text(tmp_path: Path) -> None:
    script = """
import sys, trio, memoryd
from pathlib import Path
from memoryd.store import Options, connect, open_profile
secret = sys.argv[2]
async def main():
    config = {"logging": {"level": "debug", "format": "json"}, "deadlines": {"store": 0.2, "recall": 0.2, "checkpoint": 0.2}}
    async with memoryd.open_runtime(sys.argv[1], config=config) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn(secret, secret)
            await rt.checkpoint([{"role": "user", "content": secret}])
            await rt.drain()
            directory = open_profile(Path(sys.argv[1]), "default").directory
            for name in ("memory.db", "archive.db", "log.db"):
                other = connect(directory / name, Options()); other.run("BEGIN IMMEDIATE")
            for call in (lambda: rt.store("k", secret), lambda: rt.recall(secret), lambda: rt.checkpoint([{"role": "user", "content": secret}]),
                         lambda: rt.store("k", secret, {"bad": object()}), lambda: rt.edit(secret, secret), lambda: rt.restore(secret)):
                try:
                    print(repr(await call()))
                except memoryd.errors.MemorydError as error:
                    print(repr(error), error, error.__cause__)
            print(repr(await rt.status()))
trio.run(main)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), SECRET], capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    for line in (done.stdout + done.stderr).splitlines():
        assert SECRET not in line or "id:" in line, line  # an id that the caller made up is named back to them


async def test_the_shared_memory_file_is_never_world_readable_after_vacuum(tmp_path: Path) -> None:
    async with memoryd.open_runtime(tmp_path) as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("zebra", "ok")
        await rt.drain()
    directory = open_profile(tmp_path, "default").directory
    connection = connect(directory / "log.db", Options())
    connection.run("VACUUM")
    for path in directory.glob("log.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    connection.close()
