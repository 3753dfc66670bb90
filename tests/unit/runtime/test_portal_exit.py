"""A process that ends without a close loses nothing that was accepted, and says nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import memoryd
from memoryd.blocking import Memory
from memoryd.store import Options, connect, open_profile
from memoryd.testing import CrashChild

OPEN = """
import asyncio, os, signal, sys, threading, time
import memoryd, memoryd.aio
from memoryd.blocking import Memory
memory = Memory(sys.argv[1])
def say(count, session="s1"):
    with memoryd.scope(user="ada", session=session):
        for n in range(count):
            memory.sync_turn(f"zebra {session} {n}", "ok")
"""

SHORT = OPEN.replace("Memory(sys.argv[1])", 'Memory(sys.argv[1], config={"deadlines": {"exit": 0.2, "close": 0.5}})')

ENDS = {
    "normal": ("say(50)", 0),
    "sys.exit": ("say(50); sys.exit(3)", 3),
    "exception": ("say(50); raise RuntimeError('mine')", 1),
    "os._exit": ("say(50); os._exit(4)", 4),
    "SIGTERM": ("say(50); os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -signal.SIGTERM),
    "SIGINT": ("say(50); os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -signal.SIGINT),
    "in a block": ("with memory: say(50); sys.exit(0)", 0),
    "from a thread": ("threading.Thread(target=say, args=(50,)).start()", 0),
    "inside atexit": ("import atexit; atexit.register(say, 50)", 0),
    "after a close": ("say(50); memory.close()", 0),
    "two at once": ("other = Memory(sys.argv[1]); say(25); memory, other = other, memory; say(25, 's2')", 0),
    "dropped": ("say(50); del memory", 0),
    "while another thread calls": (
        "say(50); threading.Thread(target=lambda: [memory.status() for _ in range(10**9)], daemon=True).start(); time.sleep(0.05)", 0,
    ),
}  # fmt: skip


def turns_in(home: Path) -> int:
    with Memory(home) as memory, memoryd.scope(user="ada"):
        assert memory.catch_up(30) == 0
        return len({hit.text for hit in memory.recall("zebra", 1000)})


@pytest.mark.parametrize("name", ENDS)
def test_an_end_loses_nothing(tmp_path: Path, run_script: Any, name: str) -> None:
    line, code = ENDS[name]
    done = run_script(f"{OPEN}\n{line}\n", tmp_path / "home", code=code)
    assert turns_in(tmp_path / "home") == 50
    if code == 0:
        assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("name", ["normal", "sys.exit", "exception", "SIGINT", "from a thread", "after a close", "dropped"])
def test_what_is_held_at_the_end_is_spooled(tmp_path: Path, run_script: Any, name: str) -> None:
    line, code = ENDS[name]
    home = tmp_path / "home"
    Memory(home).close()
    log = connect(open_profile(home, "default").directory / "log.db", Options())
    with log.transaction("IMMEDIATE"):
        run_script(f"{SHORT}\n{line}\n", home, code=code)
    log.close()
    assert turns_in(home) == 50


ASYNCIO = """
import asyncio, sys
import memoryd, memoryd.aio
async def main():
    memory = await memoryd.aio.Memory(sys.argv[1]).__aenter__()
    with memoryd.scope(user="ada", session="s1"):
        for n in range(50):
            await memory.sync_turn(f"zebra {n}", "ok")
asyncio.run(main())
"""


def test_an_asyncio_program_that_does_not_close(tmp_path: Path, run_script: Any) -> None:
    done = run_script(ASYNCIO, tmp_path / "home")
    assert (done.stdout, done.stderr) == ("", "")
    assert turns_in(tmp_path / "home") == 50


INTERRUPTED = f"""{OPEN}
say(50)
print("said", flush=True)
try:
    while True:
        with memoryd.scope(user="ada"):
            memory.recall("zebra")
except KeyboardInterrupt:
    print("interrupted", flush=True)
with memoryd.scope(user="ada"):
    print(len(memory.recall("zebra", 100)), flush=True)
"""


def test_ctrl_c_during_a_call_leaves_a_working_memory(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    with CrashChild([script, tmp_path / "home"]) as child:
        child.wait_for(1)
        os.kill(child.pid, signal.SIGINT)
        assert child.wait() == ["said", "interrupted", "50"]


RELOADED = f"""{OPEN}
import importlib
say(25)
importlib.reload(memoryd)
with memoryd.scope(user="ada", session="s1"):
    memory.sync_turn("zebra after reload", "ok")
memory.close()
for name in [name for name in sys.modules if name.partition(".")[0] in ("memoryd", "memoryd_local", "memoryd_null")]:
    del sys.modules[name]
import memoryd
from memoryd.blocking import Memory as Again
assert Again is not Memory
memory = Again(sys.argv[1])
say(24, "s2")
"""


def test_a_reload_and_an_import_anew_do_no_harm(tmp_path: Path, run_script: Any) -> None:
    done = run_script(RELOADED, tmp_path / "home")
    assert (done.stdout, done.stderr) == ("", "")
    assert turns_in(tmp_path / "home") == 50
