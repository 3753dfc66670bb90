"""Ten processes on one profile for ten minutes: kills, outages, processes that stand still.  Prints what is left of it.

``SOAK_SECONDS`` makes it shorter.  Two daemons (one is killed again and again, one runs all along), four clients, two programs that take
the daemon where there is one, two embedded memories; one remote backend that all deliver to.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from random import Random
from statistics import median

import attrs
import pytest
import trio

import memoryd
from memoryd.testing import CrashChild, registered
from tests.daemon.harness import SCOPE, Raw, frame, logged
from tests.daemon.soak_child import SharedRemote, open_remote

pytestmark = pytest.mark.soak

SECONDS = float(os.environ.get("SOAK_SECONDS", "600"))
REMEMBERED = 70_000  # events: somewhat more than a runtime remembers
CONFIG = 'mirrors = ["shared"]\n[delivery]\nbackoff_max = 2.0\n[logging]\nlevel = "error"\nfile = "soak.log"\nformat = "json"\n'
ROLES = {
    "steady": ("daemon", "steady"), "killed": ("daemon", "killed"),
    "client-1": ("client", "steady"), "client-2": ("client", "steady"), "client-3": ("client", "killed"), "client-4": ("client", "killed"),
    "connect-1": ("connect", "killed"), "connect-2": ("connect", "steady"), "embedded-1": ("embedded", "-"), "embedded-2": ("embedded", "-"),
}  # fmt: skip


@attrs.define
class Fleet:
    """The processes, and what each of them was promised before it was killed."""

    folder: Path
    stack: ExitStack
    children: dict[str, CrashChild] = attrs.field(factory=dict)
    said: list[str] = attrs.field(factory=list)
    counts: Counter[str] = attrs.field(factory=Counter)
    seeds: int = 0

    def promises(self) -> Iterator[tuple[str, str, str]]:
        """The lines of all, in three words each."""
        for line in self.said:
            word, _, rest = line.partition(" ")
            yield word, *rest.partition(" ")[::2]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def socket(self, name: str) -> Path:
        return self.folder / f"run/{name}.sock"

    def start(self, name: str) -> None:
        role, daemon = ROLES[name]
        self.seeds += 1
        arguments = ["-m", "tests.daemon.soak_child", role, self.home, self.socket(daemon), str(self.seeds)]
        self.children[name] = self.stack.enter_context(CrashChild(arguments))
        if role == "daemon":
            self.children[name].wait_for(1)

    def kill(self, name: str) -> None:
        self.counts["kills"] += 1
        self.said += self.children.pop(name).kill()

    def pause(self, name: str, seconds: float) -> None:
        self.counts["pauses"] += 1
        self.children[name].stop()
        time.sleep(seconds)
        self.children[name].resume()

    def outage(self) -> None:
        file = self.folder / "outage"
        if file.exists():
            file.unlink()
        else:
            self.counts["outages"] += 1
            file.touch()

    def memory(self) -> tuple[float, float]:
        """Megabytes of the daemon that runs all along: all that is resident, and what of it SQLite has not."""
        resident = int(Path(f"/proc/{self.children['steady'].pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        return resident, resident - int((self.folder / "steady.caches").read_text()) / 1e6

    def files(self) -> Counter[str]:
        """What the daemon that runs all along has open; the lock of delivery goes from process to process."""
        place, found = Path(f"/proc/{self.children['steady'].pid}/fd"), Counter[str]()
        for entry in place.iterdir():
            with suppress(FileNotFoundError):
                name = os.readlink(entry).partition(":")[0]  # sockets and pipes have numbers
                found[name] += not name.endswith("owner.lock")
        return found


def trouble(fleet: Fleet, chooser: Random) -> None:
    """One thing that happens to processes."""
    workers = [name for name in fleet.children if name != "steady"]
    match chooser.randrange(10):
        case 0 | 1 | 2:
            fleet.kill("killed")
            time.sleep(chooser.uniform(0, 2))
            fleet.start("killed")
        case 3 | 4 | 5:
            name = chooser.choice([name for name in workers if name != "killed"])
            fleet.kill(name)
            fleet.start(name)
        case 6 | 7:
            fleet.pause(chooser.choice(workers), chooser.uniform(0.1, 1.5))
        case _:
            fleet.outage()


def leaked(more: Counter[str]) -> dict[str, int]:
    """SQLite keeps one descriptor of a file that it could not close when a connection ended, and uses it for the next."""
    return {name: count for name, count in more.items() if count > name.endswith(".db")}


def settle(fleet: Fleet, before: Counter[str]) -> dict[str, int]:
    """The end: no outage, workers gone, the daemons told to end.  Gives what the steady one holds open that it did not ``before``."""
    (fleet.folder / "outage").unlink(missing_ok=True)
    for name in [name for name, (role, _) in ROLES.items() if role != "daemon"]:
        fleet.said += fleet.children.pop(name).kill()
    with Raw(fleet.socket("steady")) as raw:
        raw.hello("default", str(fleet.home))
        assert raw.call("drain", timeout=50, scope={}) is not None
    end = time.monotonic() + 30
    while (more := leaked(fleet.files() - before)) and time.monotonic() < end:
        time.sleep(0.2)
    for name in ("steady", "killed"):
        os.kill(fleet.children[name].pid, signal.SIGTERM)
        fleet.children[name].wait(60)
    return more


async def delivered(home: Path) -> memoryd.Status:
    """Open what is left and wait until everything is where it belongs."""
    async with memoryd.open_runtime(home) as runtime:
        with trio.fail_after(300):
            while not await runtime.drain(10):
                pass
        with memoryd.scope(user="ada"):
            assert (await runtime.verify()).ok
        return await runtime.status()


async def archived(home: Path, ids: set[str]) -> int:
    """How many of the promised checkpoints are there."""
    async with memoryd.open_runtime(home) as runtime:
        with memoryd.scope(user="ada"):
            return sum([bool(await runtime.checkpoint_info(id)) for id in ids])


def warm(fleet: Fleet) -> Counter[str]:
    """The daemon that runs all along has done everything once, and what it remembers of the latest events is full; its open files."""
    with Raw(fleet.socket("steady")) as raw:
        raw.hello("default", str(fleet.home))
        raw.call("checkpoint", messages=[{"role": "user", "content": "first"}], scope=SCOPE)
        for first in range(0, REMEMBERED, 500):
            turns = (frame("sync_turn", user=f"warm {n}", assistant="", scope=SCOPE, event_id=f"{n:032x}") for n in range(first, first + 500))
            raw.send(b"".join(turns))
        raw.call("recall", query="warm", scope=SCOPE)
        raw.call("drain", timeout=50, scope={})
    time.sleep(1)
    return fleet.files()


def middle(sizes: Sequence[float], begin: float, end: float) -> float:
    """The median of a part of the run."""
    return median(sizes[int(len(sizes) * begin) : int(len(sizes) * end)])


def crashes(home: Path) -> list[str]:
    """Records of bugs that were contained somewhere."""
    records = [json.loads(line) for file in home.glob("soak.log*") for line in file.read_text("utf-8").splitlines()]
    return [line for record in records if "crash" in (line := json.dumps(record))]


def test_soak(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "memoryd.toml").write_text(CONFIG)
    with closing(open_remote(tmp_path)) as table, table:
        table.execute("INSERT INTO sent VALUES (0)")
    sizes: list[tuple[float, float]] = []
    with ExitStack() as stack:
        fleet = Fleet(tmp_path, stack)
        fleet.start("steady")
        files = warm(fleet)
        for name in ROLES:
            if name != "steady":
                fleet.start(name)
        chooser, end = Random(SECONDS), time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(chooser.uniform(0.2, 2))
            trouble(fleet, chooser)
            sizes.append(fleet.memory())
        more = settle(fleet, files)
    promised = {id: text for word, id, text in fleet.promises() if word == "turn"}
    checkpoints = {id for word, id, _ in fleet.promises() if word == "checkpoint"}
    with registered("shared", lambda context: SharedRemote(tmp_path)):
        status = trio.run(delivered, home)
        archives = trio.run(archived, home, checkpoints)
    found, spool = logged(home), list(home.rglob("spool/*"))
    with closing(open_remote(tmp_path)) as table:
        arrived = {row[0] for row in table.execute("SELECT id FROM arrived")}
        [(sent,)] = table.execute("SELECT events FROM sent")
    lost = sum(found.get(id) != text for id, text in promised.items())
    doubled = len(found) - len(set(found.values()))
    resident, own = zip(*sizes, strict=True)
    early, late = middle(own, 0.2, 0.4), middle(own, 0.8, 1.0)
    bugs = crashes(home)
    rows = {
        "seconds": f"{SECONDS:.0f}",
        "kills, pauses, outages": f"{fleet.counts['kills']}, {fleet.counts['pauses']}, {fleet.counts['outages']}",
        "turns promised / in the log": f"{len(promised)} / {len(found)}",
        "checkpoints promised / there": f"{len(checkpoints)} / {archives}",
        "sent to the remote / kept there": f"{sent} / {len(arrived)}",
        "errors that workers were told": dict(Counter(what for word, what, _ in fleet.promises() if word == "error")),
        "lost": lost,
        "doubled": doubled,
        "not at the remote / unknown there": f"{len(found.keys() - arrived)} / {len(arrived - found.keys())}",
        "leaked: descriptors, spool files": f"{more or 0}, {len(spool)}",
        "contained bugs": len(bugs),
        "memory of the steady daemon": f"{early:.1f} MB -> {late:.1f} MB without SQLite's caches; with them at most {max(resident):.1f} MB",
    }
    with capsys.disabled():
        print("\n" + "\n".join(f"  {name:36}{value}" for name, value in rows.items()))
    assert promised
    assert (lost, doubled) == (0, 0)
    assert arrived == found.keys()
    assert archives == len(checkpoints)
    assert status.backends[0].rows["turns"] == len(found)
    assert not more and not spool
    assert not bugs
    assert late - early < max(4.0, 0.1 * early), "the daemon grows"
