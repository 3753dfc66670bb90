"""Backup, restore, repair, rename, rekey, copy and delete are killed at random instants: the one state or the other is there, whole."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import memoryd
from memoryd.core import build_config
from memoryd.maintain import back_up, profile_names, read_manifest, repair, restore
from memoryd.store import profile_directory
from memoryd.testing import CrashChild
from tests.crash.faults import check_files
from tests.unit.maintain.home import fill, holds, turns, with_runtime

CHILD = str(Path(__file__).with_name("child_maintain.py"))
CONFIG = build_config({"logging.level": "off", "store.free_floor": 0})


@pytest.fixture(params=[2, pytest.param(30, marks=pytest.mark.soak)])
def kills(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("original") / "home"
    with_runtime(home, lambda rt: fill(rt, 60))
    return home


async def after_backup(rt: memoryd.Runtime) -> None:
    rt.sync_turn("after the backup", "ok")
    await rt.forget(key="city")


def killed(kills: int, home: Path, file: Path, work: str, fresh: Callable[[], None], check: Callable[[bool], None]) -> None:
    """Run ``work`` once to learn how long it takes, then kill it at random instants; ``check(finished)`` after each, on a fresh home."""
    fresh()
    with CrashChild([CHILD, str(home), str(file), work]) as child:
        child.wait_for(1)
        started = time.monotonic()
        child.wait()
        took = time.monotonic() - started
    check(True)
    random = Random(work)
    for number in range(kills):
        fresh()
        with CrashChild([CHILD, str(home), str(file), work]) as child:
            child.wait_for(1)
            time.sleep(took * (number + random.random()) / kills)
            finished = "done" in child.kill()
        check(finished)


def nothing_is_left(home: Path, file: Path) -> None:
    """Whoever comes next removes what a killed process left in the making."""
    back_up(home, profile_names(home)[0], CONFIG, file.with_name("sweep"))
    assert not [path.name for path in file.parent.iterdir() if path.name.startswith(".memoryd-backup-")]
    assert [path.name for path in home.iterdir()] == ["profiles"]
    assert not [path.name for path in (home / "profiles").iterdir() if "-" in path.name.partition(".before-")[0]]
    assert not (home / "profiles" / "moving.json").exists()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "backup"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def copied(original: Path, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(original, home)


def test_a_backup_that_is_killed_leaves_the_old_one(original: Path, home: Path, file: Path, kills: int) -> None:
    copied(original, home)
    back_up(home, "default", CONFIG, file)
    with_runtime(home, after_backup)

    def check(finished: bool) -> None:
        head = read_manifest(file).head
        assert head == 64 if finished else head in (62, 64)
        restore(home, file, read_manifest(file), CONFIG, "proof")
        with_runtime(home, turns, profile="proof")
        shutil.rmtree(profile_directory(home, "proof"))
        nothing_is_left(home, file)

    killed(kills, home, file, "backup", lambda: None, check)


def test_a_restore_that_is_killed_is_done_or_not_begun(original: Path, home: Path, file: Path, kills: int) -> None:
    copied(original, home)
    back_up(home, "default", CONFIG, file)
    with_runtime(home, after_backup)
    changed = home.with_name("changed")
    shutil.copytree(home, changed)

    def check(finished: bool) -> None:
        assert profile_names(home) == ["default"]
        count = with_runtime(home, turns)
        assert count == 60 if finished else count in (60, 61)
        assert with_runtime(home, lambda rt: rt.list_keys()) == ["pet"], "what was forgotten is forgotten in either"
        check_files(home)
        if count == 60:
            assert not holds(profile_directory(home, "default"), "Oslo")
        nothing_is_left(home, file)

    killed(kills, home, file, "restore", lambda: copied(changed, home), check)


def test_a_rekey_that_is_killed_leaves_the_one_key_or_the_other(original: Path, home: Path, file: Path, kills: int) -> None:
    def check(finished: bool) -> None:
        assert profile_names(home) == ["default"]
        size = (profile_directory(home, "default") / "profile.key").stat().st_size
        assert size == 64 if finished else size in (32, 64)
        with_runtime(home, whole)
        check_files(home)
        nothing_is_left(home, file)

    killed(kills, home, file, "rekey", lambda: copied(original, home), check)


async def whole(rt: memoryd.Runtime) -> None:
    assert await turns(rt) == 60
    found = await rt.verify()
    assert found.ok
    assert found.checkpoints == 2
    assert rt.sync_turn("turn 3 of the zebra", "noted", turn_id="t3").reason == "duplicate"


def test_a_rename_that_is_killed_leaves_the_one_name_or_the_other(original: Path, home: Path, file: Path, kills: int) -> None:
    def check(finished: bool) -> None:
        (name,) = profile_names(home)
        assert name == "other" if finished else name in ("default", "other")
        with_runtime(home, whole, profile=name)
        nothing_is_left(home, file)

    killed(kills, home, file, "rename", lambda: copied(original, home), check)


def test_a_copy_that_is_killed_is_whole_or_not_there(original: Path, home: Path, file: Path, kills: int) -> None:
    def check(finished: bool) -> None:
        names = profile_names(home)
        assert names in (["default", "other"], *([] if finished else [["default"]]))
        for name in names:
            with_runtime(home, whole, profile=name)
        nothing_is_left(home, file)

    killed(kills, home, file, "copy", lambda: copied(original, home), check)


def test_a_delete_that_is_killed_leaves_all_or_nothing(original: Path, home: Path, file: Path, kills: int) -> None:
    def check(finished: bool) -> None:
        names = profile_names(home)
        assert names == [] if finished else names in ([], ["default"])
        assert with_runtime(home, turns) == (60 if names else 0)

    killed(kills, home, file, "delete", lambda: copied(original, home), check)


def test_a_repair_that_is_killed_is_repeated(original: Path, home: Path, file: Path, kills: int) -> None:
    broken = home.with_name("broken")
    shutil.copytree(original, broken)
    directory = profile_directory(broken, "default")
    for name in ("log.db", "archive.db", "memory.db"):
        with open(directory / name, "r+b") as stream:
            stream.write(b"?" * 4096)

    def check(finished: bool) -> None:
        done = repair(home, "default", CONFIG)
        assert done.findings == () or not finished
        with_runtime(home, whole)
        check_files(home)
        aside = sorted(path.name.partition(".db.")[0] for path in (profile_directory(home, "default") / "quarantine").iterdir())
        assert {"log", "archive", "memory"} <= {name.partition("-")[0] for name in aside}, "nothing was deleted"

    killed(kills, home, file, "repair", lambda: copied(broken, home), check)
