"""Every n-th operation of the disk fails: never a false receipt, never a corrupt store, always typed, and it recovers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.checkpoint import Archive, Erasure
from memoryd.core import Receipt, canonical_bytes
from memoryd.errors import MemorydError
from memoryd.store import ProfileStore, open_profile
from memoryd.testing import Fault, FaultyVFS

Rows = list[dict[str, Any]]
Talk = Callable[..., Rows]

FAULTS = [
    Fault("open"), Fault("read"), Fault("read", "short"), Fault("write", "ENOSPC"), Fault("write", "EIO"), Fault("write", "short"),
    Fault("sync"), Fault("sync", "ENOSPC"), Fault("lock"), Fault("lock", "busy"), Fault("truncate"), Fault("delete"),
]  # fmt: skip
samples = pytest.mark.parametrize("samples", [3, pytest.param(10**9, marks=pytest.mark.soak, id="all")])


@pytest.fixture
def disk() -> Iterator[FaultyVFS]:
    with FaultyVFS("archive disk") as disk:
        yield disk


def put(archive: Archive, rows: Rows) -> Receipt:
    return archive.upsert(rows, user="u", session="s", host="h", trigger="t", at=1, deadline=time.monotonic() + 20)


def canonical(rows: Rows) -> tuple[bytes, ...]:
    return tuple(map(canonical_bytes, rows))


def faults_of(disk: FaultyVFS, scenario: Callable[[], Any], fault: Fault, samples: int) -> Iterator[Fault]:
    disk.arm(None)
    scenario()
    count = disk.count(fault.operation)
    for nth in range(1, count + 1, max(1, count // samples)):
        for lasting in (False,) if fault.kind == "busy" else (False, True):  # a lock that stays is waited for: see the gate's tests
            yield Fault(fault.operation, fault.kind, nth, lasting=lasting)


def name_of(fault: Fault) -> str:
    return f"{fault.operation}-{fault.kind}"


@samples
@pytest.mark.parametrize("fault", FAULTS, ids=name_of)
def test_a_checkpoint_on_a_failing_disk(
    disk: FaultyVFS, talk: Talk, tmp_path: Path, fault: Fault, samples: int
) -> None:
    """Open, first, unchanged, grown and forked checkpoint, of which any operation may fail."""
    rows = talk(120, 900)
    steps = [rows[:80], rows[:80], rows, [{"role": "user", "content": "changed"}, *rows[1:]]]
    number = 0

    def fresh() -> ProfileStore:
        nonlocal number
        number += 1
        return open_profile(tmp_path / str(number), "p")

    def scenario(profile: ProfileStore) -> list[tuple[Receipt, Rows]]:
        receipts: list[tuple[Receipt, Rows]] = []
        archive: Archive | None = None
        for step in steps:
            try:
                archive = archive or Archive.open(profile, vfs=disk.name)
                receipts.append((put(archive, step), step))
            except MemorydError:
                continue
        if archive is not None:
            disk_error(archive.close)
        return receipts

    for case in faults_of(disk, lambda: scenario(fresh()), fault, samples):
        profile = fresh()
        disk.arm(case)
        receipts = scenario(profile)
        disk.heal()
        with Archive.open(profile) as archive:
            for receipt, step in receipts:
                assert archive.restore(receipt.id, attempt=receipt.attempt).rows == canonical(step), case
            assert archive.verify().ok, case
            for step in steps:
                assert archive.restore(put(archive, step).id).rows == canonical(step), case
            assert archive._files.reader.all("PRAGMA integrity_check") == [("ok",)], case
        shutil.rmtree(profile.directory)


def disk_error(work: Callable[[], object]) -> None:
    with suppress(MemorydError):
        work()


@samples
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.operation != "open"], ids=name_of)
def test_forgetting_and_collecting_on_a_failing_disk(
    disk: FaultyVFS, talk: Talk, tmp_path: Path, fault: Fault, samples: int
) -> None:
    rows = talk(60, 900)
    number = 0

    def prepared() -> Archive:
        nonlocal number
        number += 1
        disk.arm(None)
        archive = Archive.open(open_profile(tmp_path / str(number), "p"), vfs=disk.name)
        put(archive, rows)
        return archive

    def forget(archive: Archive) -> None:
        turns = (archive.identities_of_turn(rows[10]["content"], rows[11]["content"]),)
        archive.erase(Erasure("u", "s", turns))
        archive.collect(at=10**12)

    def scenario() -> None:
        archive = prepared()
        disk.arm(None)
        forget(archive)
        archive.close()

    for case in faults_of(disk, scenario, fault, samples):
        archive = prepared()
        disk.arm(case)
        disk_error(lambda archive=archive: forget(archive))  # type: ignore[misc]
        disk.heal()
        forget(archive)
        (info,) = archive.list()
        restored = archive.restore(info.id).rows
        assert restored == (*canonical(rows[:10]), None, None, *canonical(rows[12:])), case
        assert archive.verify().ok, case
        archive.close()


def test_a_write_that_lies_gives_no_receipt(profile: ProfileStore, talk: Talk) -> None:
    """The disk says that it has written, and has written something else: only reading back can tell."""
    receipts: list[tuple[Receipt, Rows]] = []
    refused = 0
    with _Lying("lying disk") as disk, Archive.open(profile, vfs=disk.name) as archive:
        put(archive, talk(4))
        for number in range(5, 400, 40):
            disk.lies = number % 80 == 5
            disk.lied = 0
            rows = talk(number, 700 + number)
            try:
                receipts.append((put(archive, rows), rows))
            except MemorydError:
                refused += 1
                assert disk.lied
        disk.lies = False
        assert refused
        for receipt, rows in receipts:
            assert archive.restore(receipt.id).rows == canonical(rows)
        last = put(archive, talk(400, 700))
        assert archive.restore(last.id).rows == canonical(talk(400, 700))


class _Lying(FaultyVFS):
    """Changes the end of each page of compressed rows that goes to the log."""

    lies, lied = False, 0

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        return _LyingFile(self, name, flags)


class _LyingFile(apsw.VFSFile):
    def __init__(self, disk: _Lying, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk

    def xWrite(self, data: bytes, offset: int) -> None:
        is_overflow = len(data) == 4096 and data[0] == 0  # other pages begin with their type
        if self._disk.lies and is_overflow:
            self._disk.lied += 1
            data = data[:100] + bytes([data[100] ^ 1]) + data[101:]
        super().xWrite(data, offset)


KILLED = """
import sys, time
from pathlib import Path
from memoryd.checkpoint import Archive
from memoryd.store import open_profile
archive = Archive.open(open_profile(Path(sys.argv[1]), "default"))
rows = []
for number in range(100_000):
    rows += [{"role": "user", "content": f"{number} " + "x" * 3000}, {"role": "assistant", "content": "y" * 500 + str(number)}]
    receipt = archive.upsert(rows, user="u", session="s", host="", trigger="", at=1, deadline=time.monotonic() + 20)
    print(receipt.id, receipt.rows, flush=True)
"""


def test_killed_at_any_instant_every_receipt_holds(profile: ProfileStore) -> None:
    home, last = str(profile.directory.parent.parent), dict[str, int]()
    for round_ in range(8):
        with subprocess.Popen([sys.executable, "-c", KILLED, home], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            timer = threading.Timer(0.25 + 0.07 * round_, child.kill)
            timer.start()
            for line in child.stdout:
                if line.endswith("\n"):
                    id, rows = line.split()
                    last[id] = int(rows)
            timer.join()
    assert last
    with Archive.open(profile) as archive:
        for id, rows in list(last.items())[-50:]:
            assert len(archive.restore(id).rows) == rows
        assert archive.verify().ok
