"""Copy, rekey, rename, delete: a profile of its own, the same one under another key or name, none at all."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

import memoryd
from memoryd.core import Cursor, profile_folder
from memoryd.errors import InvalidInput, ProfileMismatch, ScopeConflict, StoreLocked
from memoryd.journal import Journal, Limits, Outbox
from memoryd.maintain import (
    copy_profile,
    create_profile,
    delete_profile,
    list_profiles,
    profile_names,
    rekey_profile,
    rename_profile,
)
from memoryd.store import ProfileStore, open_profile, profile_directory
from tests.unit.maintain.home import QUIET, TALK, fill, holds, turns, with_runtime

HOSTILE = ["../..", "it's \"quoted\" $HOME `id`\n", "x" * 500, "\ud800\N{PILE OF POO}", "-rf", "default "]


@contextmanager
def log_of(profile: ProfileStore) -> Iterator[Journal]:
    journal = Journal(profile, Limits(free_floor=0))
    yield journal
    journal.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_inside_and_apart(filled: Path, name: str) -> None:
    made = create_profile(filled, name)
    assert made.directory.parent == filled.absolute() / "profiles"
    copied = copy_profile(filled, "default", f"{name[:490]} copy", QUIET)
    rename_profile(filled, name, f"{name[:490]} again", QUIET)
    assert sorted(profile_names(filled)) == sorted(["default", copied.name, f"{name[:490]} again"])
    with_runtime(filled, lambda rt: turns(rt), profile=copied.name)
    delete_profile(filled, f"{name[:490]} again", QUIET)
    assert sorted(profile_names(filled)) == sorted(["default", copied.name])
    assert [path.name for path in filled.iterdir()] == ["profiles"], "nothing is left beside them"


def test_a_copy_is_a_profile_of_its_own(filled: Path) -> None:
    original = open_profile(filled, "default")
    with log_of(original) as journal:
        Outbox(journal).advance("honcho", Cursor(journal.epoch, 42))
        epoch = journal.epoch
    done = copy_profile(filled, "default", "copy", QUIET)
    copy = open_profile(filled, "copy")
    assert (done.instance, done.events) == (copy.instance, 42)
    assert copy.instance != original.instance
    assert copy.key != original.key, "a remote backend derives its names from the key"
    with log_of(copy) as journal:
        assert journal.epoch != epoch
        assert Outbox(journal).cursor("honcho").seq == 0

    async def look(rt: memoryd.Runtime) -> None:
        assert await turns(rt) == 40
        assert (await rt.verify()).ok
        assert [len((await rt.restore(found.id)).rows) for found in await rt.checkpoints()] == [4, 2]
        assert (await rt.checkpoint(TALK)).new_rows == 0
        assert rt.sync_turn("turn 3 of the zebra", "noted", turn_id="t3").reason == "duplicate"
        await rt.forget(everything=True)

    with_runtime(filled, look, profile="copy")
    assert with_runtime(filled, turns) == 40, "the original is untouched"
    assert not holds(copy.directory, "zebra")


def test_a_copy_of_a_profile_in_use(filled: Path) -> None:
    async def work(rt: memoryd.Runtime) -> int:
        rt.sync_turn("while it is copied", "ok")
        import trio

        done = await trio.to_thread.run_sync(in_thread, filled)
        return done

    def in_thread(home: Path) -> int:
        import subprocess
        import sys

        program = "import sys, pathlib; from memoryd.core import Config; from memoryd.maintain import copy_profile; "
        program += "print(copy_profile(pathlib.Path(sys.argv[1]), 'default', 'copy', Config()).events)"
        return int(subprocess.run([sys.executable, "-c", program, str(home)], capture_output=True, check=True).stdout)

    assert with_runtime(filled, work) == 43
    assert with_runtime(filled, turns, profile="copy") == 41


async def forget_and_be_private(rt: memoryd.Runtime) -> None:
    rt.sync_turn("the secret is xyzzy", "noted", turn_id="secret")
    spoken = [*TALK, {"role": "user", "content": "the secret is xyzzy"}, {"role": "assistant", "content": "noted"}]
    await rt.checkpoint(spoken, source=b"\n".join(str(row).encode() for row in spoken))
    (hit,) = [hit for hit in await rt.recall("xyzzy") if "xyzzy" in hit.text]
    assert (await rt.forget(hit.id)).pending == 0
    with memoryd.scope(user="ada", session="hush", private=True):
        assert rt.sync_turn("private words", "yes").state == "off"


async def it_is_still_forgotten_and_private(rt: memoryd.Runtime) -> None:
    spoken = [*TALK, {"role": "user", "content": "the secret is xyzzy"}, {"role": "assistant", "content": "noted"}]
    assert rt.sync_turn("the secret is xyzzy", "noted", turn_id="secret").reason == "duplicate"
    receipt = await rt.checkpoint([*spoken, {"role": "user", "content": "go on"}])
    rows = (await rt.restore(receipt.id)).rows
    assert [row is None for row in rows] == [False, False, False, False, True, True, False]
    with memoryd.scope(user="ada", session="hush"):
        assert rt.sync_turn("private words", "yes").state == "off"
    with memoryd.scope(user="ada", session="hush", private=False), pytest.raises(ScopeConflict):
        rt.sync_turn("private words", "yes")
    assert (await rt.verify()).ok


@pytest.mark.parametrize("times", [1, 3])
def test_a_new_key_keeps_what_is_forgotten_and_what_is_private(filled: Path, times: int) -> None:
    with_runtime(filled, forget_and_be_private)
    before = open_profile(filled, "default")
    for _ in range(times):
        done = rekey_profile(filled, "default", QUIET)
        assert Path(done.kept).is_dir()
    after = open_profile(filled, "default")
    assert before.key not in (after.key,)
    assert len(after.earlier) == times
    assert before.instance != after.instance
    with_runtime(filled, it_is_still_forgotten_and_private)
    assert not holds(after.directory, "xyzzy")


def test_what_was_recalled_under_the_old_key_is_not_stored_under_the_new_one(filled: Path) -> None:
    async def recalled(rt: memoryd.Runtime) -> str:
        return (await rt.prefetch("zebra turn")).text

    block = with_runtime(filled, recalled)
    assert "zebra" in block
    rekey_profile(filled, "default", QUIET)
    assert with_runtime(filled, echo(block)) == ("off", "echo")


def echo(block: str) -> Any:
    async def work(rt: memoryd.Runtime) -> tuple[str, str]:
        accepted = rt.sync_turn(block, block)
        return accepted.state, accepted.reason

    return work


def test_a_second_archive_is_rekeyed_with_its_profile(filled: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    config = attrs.evolve(QUIET, gate=attrs.evolve(QUIET.gate, fallback_dir=str(second)))
    profile = open_profile(filled, "default")

    from memoryd.checkpoint import Archive

    place = second / profile.directory.name
    place.mkdir(parents=True)
    with Archive.open(profile, directory=place) as archive:
        archive.upsert(TALK, user="ada", session="s9", host="h", trigger="t", at=1, deadline=time.monotonic() + 60)
    rekey_profile(filled, "default", config)
    with Archive.open(open_profile(filled, "default"), directory=place) as archive:
        assert archive.verify().ok
        assert archive.verify().rows == 4
    rename_profile(filled, "default", "new", config)
    assert (second / profile_folder("new") / "archive.db").exists()
    delete_profile(filled, "new", config)
    assert not list(second.glob("*/archive.db"))


def test_a_renamed_profile_is_the_same_one(filled: Path) -> None:
    before = open_profile(filled, "default")
    rename_profile(filled, "default", "other", QUIET)
    after = open_profile(filled, "other")
    assert (after.key, after.instance) == (before.key, before.instance)
    assert with_runtime(filled, turns, profile="other") == 40
    assert create_profile(filled, "default").instance != before.instance, "the old name is free"
    assert with_runtime(filled, turns) == 0
    assert sorted(path.name for path in after.directory.iterdir() if path.name.startswith(("profile", "renamed"))) == [
        "profile.json", "profile.key",
    ]  # fmt: skip


def test_a_deleted_name_is_free_and_empty(filled: Path) -> None:
    directory = profile_directory(filled, "default")
    rekey_profile(filled, "default", QUIET)  # what it kept aside goes, too
    assert delete_profile(filled, "default", QUIET) > 100_000
    assert not holds(filled, "zebra")
    assert list((filled / "profiles").iterdir()) == []
    assert with_runtime(filled, turns) == 0
    assert directory.exists()


def test_what_is_not_there_or_taken_is_said(filled: Path) -> None:
    create_profile(filled, "b")
    for wrong in (
        lambda: create_profile(filled, "b"),
        lambda: copy_profile(filled, "default", "b", QUIET),
        lambda: copy_profile(filled, "nobody", "c", QUIET),
        lambda: rename_profile(filled, "default", "b", QUIET),
        lambda: rename_profile(filled, "nobody", "c", QUIET),
        lambda: delete_profile(filled, "nobody", QUIET),
        lambda: rekey_profile(filled, "nobody", QUIET),
        lambda: create_profile(filled, ""),
        lambda: create_profile(filled, "x" * 501),
    ):
        with pytest.raises(InvalidInput):
            wrong()
    assert profile_names(filled) == ["b", "default"]


def test_a_profile_in_use_is_left_alone(filled: Path) -> None:
    async def work(rt: memoryd.Runtime) -> None:
        for wrong in (
            lambda: rename_profile(filled, "default", "b", QUIET),
            lambda: delete_profile(filled, "default", QUIET),
            lambda: rekey_profile(filled, "default", QUIET),
        ):
            with pytest.raises(StoreLocked, match="in use"):
                wrong()
        assert rt.sync_turn("it goes on", "ok").state == "journaled"

    with_runtime(filled, work)
    assert with_runtime(filled, turns) == 41


def test_nobody_opens_a_profile_that_is_worked_on(filled: Path, run: Any) -> None:
    from memoryd.store import alone

    with alone(profile_directory(filled, "default").absolute()):
        done = run("import sys; from memoryd.blocking import Memory; Memory(sys.argv[1])", str(filled))
        assert "restored, repaired or moved" in done.stderr
    assert run("import sys; from memoryd.blocking import Memory; Memory(sys.argv[1]).close()", str(filled)).returncode == 0


def test_folders_that_say_something_else_are_listed_with_their_problem(filled: Path) -> None:
    directory = profile_directory(filled, "default")
    create_profile(filled, "torn")
    (profile_directory(filled, "torn") / "profile.json").write_bytes(b"{")
    directory.rename(directory.with_name(profile_folder("stranger")))
    (filled / "profiles" / "notes.txt").write_text("mine")
    os.symlink("/nowhere", filled / "profiles" / ("a" * 26))
    found = list_profiles(filled)
    assert [bool(one.problem) for one in found] == [True, True]
    with pytest.raises(ProfileMismatch):
        open_profile(filled, "stranger")
    assert list_profiles(filled / "nowhere") == []


def test_a_home_that_cannot_be_written_is_told(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    (filled / "profiles").chmod(0o500)
    try:
        with pytest.raises(memoryd.StoreReadOnly):
            copy_profile(filled, "default", "b", QUIET)
        assert profile_names(filled) == ["default"]
    finally:
        (filled / "profiles").chmod(0o700)


def test_a_profile_behind_a_link_is_used_and_not_deleted(filled: Path, tmp_path: Path) -> None:
    directory = profile_directory(filled, "default")
    directory.rename(tmp_path / "other disk")
    directory.symlink_to(tmp_path / "other disk")
    assert with_runtime(filled, turns) == 40
    with pytest.raises(InvalidInput, match="is a link"):
        delete_profile(filled, "default", QUIET)
    copy_profile(filled, "default", "copy", QUIET)
    rename_profile(filled, "default", "moved", QUIET)
    assert with_runtime(filled, turns, profile="moved") == 40
    assert profile_directory(filled, "moved").is_symlink()


def test_filling_a_new_profile_after_all(filled: Path) -> None:
    with_runtime(filled, fill, profile="second one")
    assert with_runtime(filled, turns, profile="second one") == 40
