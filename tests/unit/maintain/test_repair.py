"""Repair: what is damaged is put aside, what can be read goes on, and it says what is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest

import memoryd
from memoryd.core import Entry, Erased, Turn, canonical_bytes
from memoryd.errors import CheckpointBlocked, InvalidInput, MemorydError, ProfileMismatch, StoreLocked
from memoryd.journal import Journal, Limits
from memoryd.maintain import Repaired, create_profile, repair
from memoryd.store import check_store, note_store, open_profile, profile_directory
from tests.unit.maintain.home import QUIET, TALK, fill, turns, with_runtime

PAGE = 4096


def mend(home: Path, **words: Any) -> Repaired:
    return repair(home, "default", QUIET, **words)


def files(directory: Path) -> dict[str, bytes]:
    found = {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file() and not path.name.endswith("-shm")}
    return {path: data for path, data in found.items() if data or not path.endswith("-wal")}


def noise(path: Path, page: int, pages: int = 1) -> None:
    with open(path, "r+b") as stream:
        stream.seek(page * PAGE)
        stream.write(Random(page).randbytes(pages * PAGE))


def pages_with(path: Path, word: bytes) -> list[int]:
    data = path.read_bytes()
    return [page for page in range(len(data) // PAGE) if word in data[page * PAGE : (page + 1) * PAGE]]


def entries(home: Path) -> list[Entry]:
    journal = Journal(open_profile(home, "default"), Limits(free_floor=0))
    found = journal.read(0, 10_000, 1 << 30)
    journal.close()
    return found


async def goes_on(rt: memoryd.Runtime) -> None:
    """Turns, recall and the gate work."""
    assert rt.sync_turn("after the repair", "ok").state == "journaled"
    assert (await rt.checkpoint([*TALK, {"role": "user", "content": "after the repair"}])).verdict == "archived"
    assert await rt.drain(30)
    assert "after the repair" in [hit.text for hit in await rt.recall("after the repair")]
    assert (await rt.status()).state == "ok"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with enough for many pages; tests damage copies of it."""
    home = tmp_path_factory.mktemp("original") / "home"
    with_runtime(home, lambda rt: fill(rt, 400))
    with_runtime(home, many_checkpoints)
    return home


async def many_checkpoints(rt: memoryd.Runtime) -> None:
    for number in range(8):
        with memoryd.scope(user="ada", session=f"c{number}"):
            await rt.checkpoint([{"role": "user", "content": f"{number} {n} " * 60} for n in range(20)])


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "a home")
    return tmp_path / "a home"


def test_a_sound_profile_is_left_as_it_is(home: Path) -> None:
    before = files(profile_directory(home, "default"))
    for words in ({"dry_run": True}, {}):
        done = mend(home, **words)
        assert (done.findings, done.whole) == ((), True)
        after = files(profile_directory(home, "default"))
        assert {path for path in after if "maintenance.lock" not in path} == set(before)
        assert all(after[path] == before[path] for path in before if path.endswith((".json", ".key")))
    with_runtime(home, goes_on)


@pytest.mark.parametrize("nth", [0, 3, 7, -1])
def test_a_log_with_a_damaged_page_keeps_every_other_event(home: Path, nth: int) -> None:
    directory = profile_directory(home, "default")
    before = entries(home)
    noise(directory / "log.db", pages_with(directory / "log.db", b" of the zebra")[nth])
    damaged = (directory / "log.db").read_bytes()
    told = mend(home, dry_run=True)
    assert not told.whole
    assert (directory / "log.db").read_bytes() == damaged, "a dry run changes nothing"
    done = mend(home)
    (finding,) = done.findings
    assert Path(finding.kept).read_bytes() == damaged
    after = entries(home)
    assert [entry.seq for entry in after] == list(range(1, len(after) + 1)), "every place is kept"
    assert nth == -1 or len(after) == len(before)
    same = sum(one.event == other.event for one, other in zip(before, after, strict=False))
    lost = [other for one, other in zip(before, after, strict=False) if one.event != other.event]
    assert same >= len(before) - 40, "a page holds some twenty events"
    assert all(isinstance(entry.event, Erased) for entry in lost)
    assert finding.lost
    assert (f"{len(lost)} could not be read" in finding.remedy) is bool(lost)
    with_runtime(home, goes_on)
    assert mend(home).findings == ()


@pytest.mark.parametrize("name", ["log.db", "archive.db"])
@pytest.mark.parametrize("page", [0, 1])
def test_a_damaged_beginning_is_read_all_the_same(home: Path, name: str, page: int) -> None:
    before = entries(home)
    noise(profile_directory(home, "default") / name, page)
    done = mend(home)
    assert done.findings[0].kept
    assert [entry.event for entry in entries(home)] == [entry.event for entry in before]
    with_runtime(home, goes_on)

    async def look(rt: memoryd.Runtime) -> None:
        assert (await rt.verify()).ok
        assert len(await rt.checkpoints()) == 11

    with_runtime(home, look)


@pytest.mark.parametrize("times", [3, pytest.param(60, marks=pytest.mark.soak)])
def test_random_damage_never_ends_in_anything_but_a_working_profile(home: Path, original: Path, times: int) -> None:
    chance = Random(times)
    for _ in range(times):
        shutil.rmtree(home)
        shutil.copytree(original, home)
        directory = profile_directory(home, "default")
        for name in ("log.db", "archive.db", "memory.db"):
            pages = (directory / name).stat().st_size // PAGE
            for _ in range(chance.randrange(4)):
                noise(directory / name, chance.randrange(pages), chance.choice((1, 1, 3)))
            if chance.random() < 0.2:
                os.truncate(directory / name, chance.randrange(pages) * PAGE)
        mend(home)
        with_runtime(home, goes_on)
        assert all(check_store(path) == "" for path in directory.glob("*.db"))


def test_a_damaged_archive_keeps_its_other_checkpoints(home: Path) -> None:
    directory = profile_directory(home, "default")
    noise(directory / "archive.db", (directory / "archive.db").stat().st_size // PAGE - 2)
    done = mend(home)
    assert not done.whole
    assert [finding.file for finding in done.findings] == ["archive.db", "archive.db"]

    async def look(rt: memoryd.Runtime) -> int:
        corrupt = (await rt.verify()).corrupt
        for number in range(8):
            with memoryd.scope(user="ada", session=f"c{number}"):
                for found in await rt.checkpoints(session=f"c{number}"):
                    if found.id not in corrupt:
                        assert len((await rt.restore(found.id)).rows) == 20
                await rt.checkpoint([{"role": "user", "content": f"{number} {n} " * 60} for n in range(20)])
        return len(corrupt)

    assert 1 <= with_runtime(home, look) <= 3

    async def whole(rt: memoryd.Runtime) -> None:
        for number in range(8):
            with memoryd.scope(user="ada", session=f"c{number}"):
                (found,) = await rt.checkpoints(session=f"c{number}")
                rows = (await rt.restore(found.id)).rows
                assert rows == tuple(canonical_bytes({"role": "user", "content": f"{number} {n} " * 60}) for n in range(20))

    with_runtime(home, whole)


def damaged_index(directory: Path) -> None:
    size = (directory / "memory.db").stat().st_size // PAGE
    for page in range(size // 2, size):
        noise(directory / "memory.db", page)


@pytest.mark.parametrize("damage", [damaged_index, lambda directory: (directory / "memory.db").write_bytes(b"no database" * 999)])
def test_a_damaged_projection_is_made_anew(home: Path, damage: Callable[[Path], Any]) -> None:
    damage(profile_directory(home, "default"))
    done = mend(home)
    assert done.whole
    (finding,) = done.findings
    assert (finding.file, finding.remedy) == ("memory.db", "made anew from the log")
    assert Path(finding.kept).exists()
    assert with_runtime(home, turns) == 400
    with_runtime(home, goes_on)


def test_a_sound_projection_is_made_anew_where_one_asks(home: Path) -> None:
    assert mend(home, rebuild=True).whole
    assert with_runtime(home, turns) == 400


@pytest.mark.parametrize("name", ["log.db", "archive.db"])
@pytest.mark.parametrize("empty", [False, True])
def test_a_store_that_is_gone_is_begun_anew_only_here(home: Path, name: str, empty: bool) -> None:
    directory = profile_directory(home, "default")
    for path in directory.glob(f"{name}*"):
        path.unlink()
    if empty:
        (directory / name).write_bytes(b"")

    async def look(rt: memoryd.Runtime) -> None:
        if name == "log.db":
            with pytest.raises(MemorydError, match="missing"):
                rt.sync_turn("x", "y")
            assert (await rt.checkpoint(TALK)).verdict == "archived", "the gate goes on"
            assert any("memoryd repair" in note for note in (await rt.status()).notes)
        else:
            with pytest.raises(CheckpointBlocked, match="memoryd repair"):
                await rt.checkpoint(TALK)
            assert rt.sync_turn("x", "y").state == "journaled", "so does the log"

    import trio

    async def main() -> None:
        async with memoryd.open_runtime(home, config=QUIET) as rt:
            with memoryd.scope(user="ada", session="s1"):
                await look(rt)

    trio.run(main)
    assert not mend(home, dry_run=True).whole
    done = mend(home)
    (finding,) = done.findings
    assert (finding.file, finding.lost) == (name, True)
    with_runtime(home, goes_on)
    assert mend(home).findings == ()


def test_a_lost_key_is_made_anew(home: Path) -> None:
    key = profile_directory(home, "default") / "profile.key"
    key.unlink()
    assert not mend(home, dry_run=True).whole
    assert not key.exists()
    done = mend(home)
    assert done.findings[0].file == "profile.key"
    assert key.stat().st_size == 32

    async def look(rt: memoryd.Runtime) -> None:
        assert (await rt.verify()).ok
        assert rt.sync_turn("turn 3 of the zebra", "noted", turn_id="t3").reason == "duplicate"
        assert (await rt.checkpoint(TALK)).new_rows == 0

    with_runtime(home, look)
    with_runtime(home, goes_on)


def test_a_lost_identity_is_read_from_the_stores(home: Path) -> None:
    before = open_profile(home, "default")
    for content in (None, b"{"):
        identity = before.directory / "profile.json"
        identity.unlink()
        if content is not None:
            identity.write_bytes(content)
        done = mend(home)
        assert done.whole
        assert open_profile(home, "default").instance == before.instance
    with_runtime(home, goes_on)


def test_a_log_with_rows_that_nobody_wrote_is_mended(home: Path) -> None:
    import apsw

    connection = apsw.Connection(str(profile_directory(home, "default") / "log.db"))
    connection.execute("UPDATE event SET event_id = 'text', at = -1 WHERE seq = 9")
    connection.close()
    done = mend(home)
    assert "1 could not be read" in done.findings[0].remedy
    assert isinstance(entries(home)[8].event, Erased)
    assert isinstance(entries(home)[9].event, Turn)
    with_runtime(home, goes_on)


def test_what_repair_does_not_touch(home: Path) -> None:
    with pytest.raises(InvalidInput):
        repair(home, "nobody", QUIET)
    assert not profile_directory(home, "nobody").exists()
    create_profile(home, "other")
    stranger = profile_directory(home, "other")
    (stranger / "profile.json").write_bytes((profile_directory(home, "default") / "profile.json").read_bytes())
    with pytest.raises(ProfileMismatch):
        repair(home, "other", QUIET)

    async def work(rt: memoryd.Runtime) -> None:
        with pytest.raises(StoreLocked):
            mend(home)
        assert mend(home, dry_run=True).whole
        assert rt.sync_turn("it goes on", "ok").state == "journaled"

    with_runtime(home, work)


@pytest.mark.parametrize("damage", [lambda path: noise(path, 1, 5), lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_a_second_archive_is_mended_like_the_first(home: Path, tmp_path: Path, damage: Callable[[Path], Any]) -> None:
    config = attrs.evolve(QUIET, gate=attrs.evolve(QUIET.gate, fallback_dir=str(tmp_path / "other disk")))
    second = tmp_path / "other disk" / profile_directory(home, "default").name
    second.mkdir(parents=True)
    shutil.copy(profile_directory(home, "default") / "archive.db", second)
    note_store(second / "archive.db")
    damage(second / "archive.db")
    assert not repair(home, "default", config, dry_run=True).whole
    found = repair(home, "default", config).findings
    assert {finding.file for finding in found} == {str(second / "archive.db")}
    assert all(Path(finding.kept).parent == second / "quarantine" for finding in found if finding.kept)
    assert check_store(second / "archive.db") == ""
    assert [path.name for path in (tmp_path / "other disk").iterdir()] == [second.name]
    assert {finding.problem.partition(" ")[2][:11] for finding in repair(home, "default", config).findings} <= {"checkpoints"}
