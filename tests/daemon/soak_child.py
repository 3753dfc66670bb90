"""``python -m tests.daemon.soak_child ROLE HOME SOCKET SEED``: one of the processes of the soak.

Its backend ``shared`` is one service for all of them: a table that knows each event by its id, down while the file ``outage`` is there,
and which now and then loses an answer.  A worker prints ``turn ID TEXT`` for each turn and ``checkpoint ID`` for each checkpoint that it
was promised.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import apsw
import trio

import memoryd
from memoryd.core import BackendContext, Entry, Outcome, Turn
from memoryd.errors import BackendAmbiguous, BackendTransient, MemorydError
from memoryd.runtime import registered_backends
from memoryd.testing import FakeRemote

PACE = 0.02  # seconds between turns of one worker
OK = Outcome("ok")


class SharedRemote(FakeRemote):
    """The cursor is kept by the log; deliveries are deduplicated by event id, as a remote service does it."""

    def __init__(self, folder: Path) -> None:
        super().__init__("shared")
        self._folder = folder
        self._random = Random(os.getpid())

    async def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        await trio.lowlevel.checkpoint()
        if (self._folder / "outage").exists():
            raise BackendTransient("shared: down")
        luck = self._random.random()
        if luck < 0.03:
            raise BackendAmbiguous("shared: no answer, nothing arrived")
        await trio.to_thread.run_sync(self._put, entries)
        if luck > 0.97:
            raise BackendAmbiguous("shared: no answer, all arrived")
        return [OK] * len(entries)

    def _put(self, entries: Sequence[Entry]) -> None:
        rows = [(e.event.event_id.hex(), e.seq) for e in entries if isinstance(e.event, Turn)]
        with closing(open_remote(self._folder)) as table, table:
            table.execute("UPDATE sent SET events = events + ?", (len(rows),))
            table.executemany("INSERT OR IGNORE INTO arrived (id, seq) VALUES (?, ?)", rows)


def open_remote(folder: Path) -> sqlite3.Connection:
    table = sqlite3.connect(folder / "remote.db", timeout=60)
    table.execute("CREATE TABLE IF NOT EXISTS arrived (id TEXT PRIMARY KEY, seq INTEGER)")
    table.execute("CREATE TABLE IF NOT EXISTS sent (events INTEGER)")
    return table


class Worker:
    """Makes turns and now and then something else, with whatever memory it is given."""

    def __init__(self, role: str, seed: int) -> None:
        self._name = f"{role}-{os.getpid()}-{seed}"
        self._random = Random(seed)
        self._rows: list[dict[str, str]] = []

    def text(self) -> str:
        """Never the same twice: whoever finds one twice has found a doubled event."""
        text = f"{self._name}-{len(self._rows)} " + " ".join(f"w{self._random.randrange(5000)}" for _ in range(20))
        self._rows.append({"role": "user", "content": text})
        return text

    def what(self) -> str:
        luck = self._random.random()
        return "recall" if luck < 0.05 else "checkpoint" if luck < 0.07 else "store" if luck < 0.12 else "turn"

    @property
    def rows(self) -> list[dict[str, str]]:
        return self._rows[-60:]

    @contextmanager
    def scope(self) -> Iterator[None]:
        with memoryd.scope(user="ada", session=self._name):
            yield


def say(*words: object) -> None:
    print(*words, flush=True)


def threads(memory: Any, worker: Worker) -> None:
    """A client, or an embedded memory, for threads."""
    with worker.scope():
        while True:
            try:
                match worker.what():
                    case "recall":
                        memory.recall("w1 w2 w3")
                    case "checkpoint" if worker.rows:
                        say("checkpoint", memory.checkpoint(worker.rows).id)
                    case "store":
                        memory.store("key", worker.text())
                    case _:
                        text = worker.text()
                        accepted = memory.settled(memory.sync_turn(text, ""), 30)
                        if accepted.state == "journaled":
                            say("turn", accepted.event_id, text)
            except MemorydError as error:
                say("error", type(error).__name__)
            time.sleep(PACE)


async def tasks(home: Path, socket: Path, worker: Worker) -> None:
    """A program that takes the daemon where there is one."""
    async with memoryd.connect(home, socket=socket) as runtime:
        with worker.scope():
            while True:
                try:
                    if worker.what() == "recall":
                        await runtime.recall("w1 w2 w3")
                    text = worker.text()
                    accepted = await runtime.settled(runtime.sync_turn(text, ""), 30)
                    if accepted.state == "journaled":
                        say("turn", accepted.event_id, text)
                except MemorydError as error:
                    say("error", type(error).__name__)
                await trio.sleep(PACE)


def patiently(make: Any) -> Any:
    """A client of a daemon that is being started again."""
    while True:
        try:
            return make()
        except MemorydError as error:
            say("error", type(error).__name__)
            time.sleep(0.2)


def tell_caches(file: Path) -> None:
    """Write down how much SQLite holds, most of it page caches, which fill up to their bounds."""
    while True:
        draft = file.with_suffix(".new")
        draft.write_text(str(apsw.memory_used()))
        draft.replace(file)
        time.sleep(0.5)


def main(role: str, home: Path, socket: Path, seed: int) -> int:
    def create(context: BackendContext) -> SharedRemote:
        return SharedRemote(home.parent)

    registered_backends["shared"] = create
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    worker = Worker(role, seed)
    match role:
        case "daemon":
            from memoryd.cli import main as run

            threading.Thread(target=tell_caches, args=(home.parent / f"{socket.stem}.caches",), daemon=True).start()
            return run(["serve", "--home", str(home), "--socket", str(socket)])
        case "client":
            from memoryd.client.blocking import Client

            threads(patiently(lambda: Client(home, socket=socket)), worker)
        case "embedded":
            from memoryd.blocking import Memory

            threads(patiently(lambda: Memory(home)), worker)
        case _:
            trio.run(tasks, home, socket, worker)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])))
