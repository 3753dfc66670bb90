"""Backup and restore: whole while others write, verified, and never a way back for what was forgotten."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

import memoryd
from memoryd.core import Cursor
from memoryd.errors import InvalidInput, MemorydError, StoreBroken, StoreCorrupt, StoreFull, StoreLocked, StoreTooNew
from memoryd.journal import Journal, Limits, Outbox
from memoryd.maintain import back_up, create_profile, profile_names, read_manifest, rekey_profile, restore
from memoryd.store import check_store, open_profile, profile_directory
from memoryd.testing import CrashChild, Fault, FaultyVFS
from tests.unit.maintain.home import QUIET, TALK, fill, holds, turns, with_runtime

CHILD = str(Path(__file__).parents[2] / "crash/child_append.py")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "a place").mkdir()
    return tmp_path / "a place" / "o'clock.memoryd-backup"


def bring_back(home: Path, file: Path, profile: str | None = None) -> Any:
    return restore(home, file, read_manifest(file), QUIET, profile)


def only(file: Path) -> None:
    assert [path.name for path in file.parent.iterdir()] == [file.name], "no draft is left"


# -- backup ------------------------------------------------------------------------------------------------------------------


def test_a_backup_is_one_private_file(filled: Path, file: Path) -> None:
    told: list[tuple[int, int]] = []
    os.umask(0o022)
    done = back_up(filled, "default", QUIET, file, lambda done, total: told.append((done, total)))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (done.events, done.bytes, done.file) == (42, file.stat().st_size, str(file))
    assert told[-1][0] == told[-1][1] > 0
    only(file)
    with tarfile.open(file) as tar:
        names = tar.getnames()
        assert {member.mode for member in tar.getmembers()} == {0o600}
    assert names[0] == "manifest.json"
    assert set(names[1:]) == set(done.files) == {
        "profile.json", "profile.key", "gate.receipts.jsonl", "memory.db", "log.db", "archive.db",
    }  # fmt: skip
    manifest = read_manifest(file)
    assert (manifest.name, manifest.instance, manifest.head) == ("default", open_profile(filled, "default").instance, 42)


def test_every_acknowledged_event_of_before_is_in_it_while_others_write(home: Path, file: Path) -> None:
    with CrashChild([CHILD, str(home), "one"]) as child:
        before = child.wait_for(200)
        for _ in range(3):
            back_up(home, "default", QUIET, file)
        after = child.kill()
    assert len(after) > len(before), "it went on meanwhile"
    bring_back(home, file, "copy")
    profile = open_profile(home, "copy")
    journal = Journal(profile, Limits(free_floor=0))
    head = journal.head().seq
    ids = journal.ids_of(range(1, head + 1))
    journal.close()
    assert head >= len(before)
    original = Journal(open_profile(home, "default"), Limits(free_floor=0))
    assert original.ids_of(range(1, head + 1)) == ids, "in order, without a hole"
    original.close()
    assert with_runtime(home, turns, profile="copy") == head


@pytest.mark.parametrize("operation", ["write", "sync", "read", "open"])
def test_a_failing_disk_leaves_the_old_backup(filled: Path, file: Path, operation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    back_up(filled, "default", QUIET, file)
    before = file.read_bytes()
    failures = 0
    with FaultyVFS("backup disk") as disk:
        monkeypatch.setattr("memoryd.maintain._snapshot.snapshot", on_disk(disk.name))
        for nth in (1, 3, 8, 21):
            disk.arm(Fault(operation, "EACCES" if operation == "open" else "ENOSPC" if operation == "write" else "EIO", nth=nth))
            try:
                back_up(filled, "default", QUIET, file)
            except MemorydError:
                failures += 1
                assert file.read_bytes() == before
            disk.heal()
            only(file)
            before = file.read_bytes()
    assert failures
    bring_back(filled, file)
    assert with_runtime(filled, turns) == 40


def on_disk(vfs: str) -> Callable[..., None]:
    from memoryd.store import snapshot

    return lambda *arguments, **words: snapshot(*arguments, **words, vfs=vfs)


def test_what_cannot_be_a_backup_is_refused(filled: Path, file: Path) -> None:
    with pytest.raises(InvalidInput, match="no profile"):
        back_up(filled, "nobody", QUIET, file)
    assert profile_names(filled) == ["default"], "it was not made"
    with pytest.raises(InvalidInput, match="no file"):
        back_up(filled, "default", QUIET, file.parent)
    with pytest.raises(InvalidInput, match="nowhere"):
        back_up(filled, "default", QUIET, file.parent / "nowhere" / "x")


def test_a_backup_through_a_link_replaces_what_it_points_to(filled: Path, file: Path) -> None:
    link = file.parent / "latest"
    link.symlink_to(file)
    assert back_up(filled, "default", QUIET, link).file == str(file)
    assert link.is_symlink()
    assert read_manifest(link).head == 42


def test_a_damaged_projection_is_left_out_and_a_damaged_log_is_not_backed_up(filled: Path, file: Path) -> None:
    directory = profile_directory(filled, "default")
    damage(directory / "memory.db")
    done = back_up(filled, "default", QUIET, file)
    assert "memory.db" not in done.files
    assert "made anew" in done.warnings[0]
    bring_back(filled, file)
    assert with_runtime(filled, turns) == 40
    damage(profile_directory(filled, "default") / "log.db")
    with pytest.raises(StoreCorrupt, match="log.db"):
        back_up(filled, "default", QUIET, file)
    assert read_manifest(file).head == 42


def damage(path: Path) -> None:
    """Noise in every page after the third."""
    size = path.stat().st_size
    with open(path, "r+b") as stream:
        for at in range(3 * 4096, size, 4096):
            stream.seek(at)
            stream.write(os.urandom(64))


@pytest.mark.parametrize("name", ["log.db", "archive.db"])
def test_a_store_that_is_gone_is_not_left_out_without_a_word(filled: Path, file: Path, name: str) -> None:
    (profile_directory(filled, "default") / name).unlink()
    with pytest.raises(StoreBroken, match="memoryd repair"):
        back_up(filled, "default", QUIET, file)


def test_a_forget_names_the_backup(filled: Path, file: Path) -> None:
    back_up(filled, "default", QUIET, file)

    async def work(rt: memoryd.Runtime) -> tuple[str, ...]:
        return (await rt.forget(key="city")).warnings

    (warning,) = with_runtime(filled, work)
    assert warning.startswith(str(file))
    file.unlink()
    assert with_runtime(filled, work) == ()


# -- restore -----------------------------------------------------------------------------------------------------------------


async def change(rt: memoryd.Runtime) -> None:
    """What happens after the backup."""
    rt.sync_turn("after the backup", "ok")
    await rt.store("city", "Bergen")


async def as_it_was(rt: memoryd.Runtime) -> None:
    assert await turns(rt) == 40
    city = await rt.retrieve("city")
    assert city is not None and city.value == "Oslo"
    assert (await rt.verify()).ok
    found = await rt.checkpoints()
    assert [len((await rt.restore(one.id)).rows) for one in found] == [4, 2]
    assert rt.sync_turn("turn 3 of the zebra", "noted", turn_id="t3").reason == "duplicate"
    assert rt.sync_turn("new after all", "ok").seq == 43


def test_a_restore_brings_back_what_was_and_keeps_what_is(filled: Path, file: Path) -> None:
    profile = open_profile(filled, "default")
    (profile.directory / "memoryd.toml").write_text("[recall]\nbudget_chars = 500\n")
    journal = Journal(profile, Limits(free_floor=0))
    Outbox(journal).advance("honcho", Cursor(journal.epoch, 42))
    epoch = journal.epoch
    journal.close()
    back_up(filled, "default", QUIET, file)
    with_runtime(filled, change)
    done = bring_back(filled, file)
    assert (done.events, done.forgets, done.warnings) == (42, 0, ())
    after = open_profile(filled, "default")
    assert (after.instance, after.key) == (profile.instance, profile.key)
    assert (after.directory / "memoryd.toml").read_text() == "[recall]\nbudget_chars = 500\n"
    journal = Journal(after, Limits(free_floor=0))
    assert journal.epoch != epoch, "cursors of before mean nothing"
    assert Outbox(journal).cursor("honcho").seq == 0
    journal.close()
    with_runtime(filled, as_it_was)
    kept = Path(done.kept)
    assert holds(kept, "after the backup"), "nothing is deleted"
    assert all(stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600) for path in after.directory.rglob("*"))
    assert sorted(path.name for path in filled.iterdir()) == ["profiles"]


def test_a_restore_on_a_fresh_machine(filled: Path, file: Path, tmp_path: Path) -> None:
    back_up(filled, "default", QUIET, file)
    other = tmp_path / "other machine"
    done = bring_back(other, file)
    assert done.kept == ""
    with_runtime(other, as_it_was)

    async def forget(rt: memoryd.Runtime) -> tuple[str, ...]:
        return (await rt.forget(key="pet")).warnings

    assert with_runtime(other, forget)[0].startswith(str(file)), "it came from there"


async def forget_some(rt: memoryd.Runtime) -> None:
    rt.sync_turn("after the backup", "ok")
    (hit,) = [hit for hit in await rt.recall("turn 7 of the zebra") if hit.text == "turn 7 of the zebra"]
    await rt.forget(hit.id)
    await rt.forget(key="city")
    assert (await rt.forget(session="s2")).pending == 0


async def second_session(rt: memoryd.Runtime) -> None:
    rt.sync_turn("the word is xyzzy", "noted")
    await rt.checkpoint([{"role": "user", "content": "the word is xyzzy"}, {"role": "assistant", "content": "noted"}])


async def still_forgotten(rt: memoryd.Runtime) -> None:
    assert await turns(rt) == 39
    assert await rt.list_keys() == ["pet"]
    assert "turn 7 of the zebra" not in [hit.text for hit in await rt.recall("turn 7 of the zebra", limit=100)]
    assert (await rt.verify()).ok
    assert rt.sync_turn("turn 7 of the zebra", "noted", turn_id="t7").reason == "duplicate"


@pytest.mark.parametrize("broken", [None, "log.db", "archive.db"])
@pytest.mark.parametrize("name", [None, "other"])
def test_what_was_forgotten_since_stays_forgotten(filled: Path, file: Path, name: str | None, broken: str | None) -> None:
    with_runtime(filled, second_session, session="s2")
    back_up(filled, "default", QUIET, file)
    with_runtime(filled, forget_some)
    directory = profile_directory(filled, "default")
    if broken == "log.db":
        lose_a_page(directory / broken)
    elif broken:
        (directory / broken).write_bytes(b"no database" * 1000)
    done = bring_back(filled, file, name)
    assert done.forgets == 3
    with_runtime(filled, still_forgotten, profile=done.profile)
    restored = profile_directory(filled, done.profile)
    for word in ("xyzzy", "turn 7 of the zebra", "Oslo"):
        assert not holds(restored, word), word
    again = bring_back(filled, file, name)
    assert again.forgets == 3, "from the restored one, which knows them, too"
    assert bool(done.warnings) is (broken == "archive.db")


def lose_a_page(path: Path) -> None:
    """Damage the first leaf of the table of events, which holds none of the tombstones."""
    data = path.read_bytes()
    at = data.index(b"turn 0 of the zebra") // 4096 * 4096
    with open(path, "r+b") as stream:
        stream.seek(at)
        stream.write(os.urandom(64))


def test_forgets_of_another_profile_mean_nothing(filled: Path, file: Path) -> None:
    back_up(filled, "default", QUIET, file)
    with_runtime(filled, fill, profile="other")

    async def forget_the_session(rt: memoryd.Runtime) -> None:
        await rt.forget(session="s1")

    with_runtime(filled, forget_the_session, profile="other")
    done = bring_back(filled, file, "other")
    assert (done.forgets, done.warnings) == (0, ())
    with_runtime(filled, as_it_was, profile="other")


def test_forgets_of_after_a_new_key_are_done_again(filled: Path, file: Path) -> None:
    with_runtime(filled, second_session, session="s2")
    back_up(filled, "default", QUIET, file)
    rekey_profile(filled, "default", QUIET)
    with_runtime(filled, forget_some)
    assert bring_back(filled, file).forgets == 3
    with_runtime(filled, still_forgotten)
    assert not holds(profile_directory(filled, "default"), "xyzzy")


def test_a_forget_that_was_not_through_at_the_backup_goes_on(filled: Path, file: Path) -> None:
    from memoryd.core import Forget, Scope, new_event_id
    from memoryd.journal import ErasePlan, Erasures

    journal = Journal(open_profile(filled, "default"), Limits(free_floor=0))
    Erasures(journal).begin(Forget(new_event_id(), Scope(user="ada"), 1, (8,)), ErasePlan("ada"))
    journal.close()
    back_up(filled, "default", QUIET, file)
    bring_back(filled, file, "other")
    assert with_runtime(filled, turns, profile="other") == 39
    assert not holds(profile_directory(filled, "other"), "turn 7 of the zebra")


def test_a_profile_in_use_is_not_replaced(filled: Path, file: Path) -> None:
    back_up(filled, "default", QUIET, file)

    async def work(rt: memoryd.Runtime) -> None:
        with pytest.raises(StoreLocked, match="in use"):
            bring_back(filled, file)
        assert rt.sync_turn("it goes on", "ok").state == "journaled"

    with_runtime(filled, work)
    assert with_runtime(filled, turns) == 41


def test_what_was_broken_before_can_be_restored(filled: Path, file: Path) -> None:
    back_up(filled, "default", QUIET, file)
    directory = profile_directory(filled, "default")
    for path in directory.iterdir():
        if path.is_file():
            path.write_bytes(b"")
    bring_back(filled, file)
    with_runtime(filled, as_it_was)


def test_a_second_archive_is_part_of_it(filled: Path, file: Path, tmp_path: Path) -> None:
    config = attrs.evolve(QUIET, gate=attrs.evolve(QUIET.gate, fallback_dir=str(tmp_path / "second")))
    place = tmp_path / "second" / profile_directory(filled, "default").name
    place.mkdir(parents=True)
    shutil.copy(profile_directory(filled, "default") / "archive.db", place)
    assert "second.db" in back_up(filled, "default", config, file).files
    manifest = read_manifest(file)
    assert "is there already" in restore(filled, file, manifest, config).warnings[0]
    assert "names no place" in restore(filled, file, manifest, QUIET).warnings[0]
    shutil.rmtree(place)
    assert restore(filled, file, manifest, config).warnings == ()
    assert (place / "archive.db").stat().st_size
    assert check_store(place / "archive.db") == ""


# -- files that are no backup ------------------------------------------------------------------------------------------------


def test_a_flipped_byte_anywhere_changes_nothing(filled: Path, file: Path) -> None:
    back_up(filled, "default", QUIET, file)
    data = file.read_bytes()
    create_profile(filled, "other")
    for at in range(100, len(data) - 10_240, len(data) // 12):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        with pytest.raises(MemorydError):
            bring_back(filled, file, "other")
    for size in (0, 1, 511, 512, 1024, len(data) // 2, len(data) - 11_000):
        file.write_bytes(data[:size])
        with pytest.raises(StoreCorrupt, match="nothing was changed"):
            bring_back(filled, file, "other")
    assert with_runtime(filled, turns, profile="other") == 0
    assert [path.name for path in filled.iterdir()] == ["profiles"]


def members(file: Path) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(file) as tar:
        for member in tar.getmembers():
            stream = tar.extractfile(member)
            assert stream is not None
            yield member, stream.read()


def rewritten(file: Path, change: Callable[[dict[str, Any]], None], extra: tarfile.TarInfo | None = None) -> None:
    """The backup with another manifest, and maybe one member more."""
    parts = list(members(file))
    head = json.loads(parts[0][1])
    change(head)
    parts[0] = (parts[0][0], json.dumps(head).encode())
    with tarfile.open(file, "w") as tar:
        for member, data in parts:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        if extra is not None:
            tar.addfile(extra)


def link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


@pytest.mark.parametrize(
    ("change", "extra"),
    [
        (lambda head: head.update(format="other"), None),
        (lambda head: head.pop("name"), None),
        (lambda head: head["files"].pop("profile.key"), None),
        (lambda head: head["files"].update({"../../evil": [0, ""]}), None),
        (lambda head: head["files"].update({"/etc/passwd": [0, ""]}), None),
        (lambda head: head["files"].update({"log.db": "?"}), None),
        (lambda head: head.update(files=[]), None),
        (lambda head: None, tarfile.TarInfo("../../evil")),
        (lambda head: None, link("log.db", "/etc/passwd")),
        (lambda head: None, tarfile.TarInfo("log.db")),
    ],
)
def test_a_hostile_backup_is_refused(filled: Path, file: Path, change: Any, extra: Any) -> None:
    back_up(filled, "default", QUIET, file)
    rewritten(file, change, extra)
    with pytest.raises(StoreCorrupt):
        bring_back(filled, file, "other")
    assert profile_names(filled) == ["default"]


def test_a_newer_backup_says_so(filled: Path, file: Path) -> None:
    back_up(filled, "default", QUIET, file)
    rewritten(file, lambda head: head.update(version=2))
    with pytest.raises(StoreTooNew, match="upgrade memoryd"):
        read_manifest(file)


def test_a_full_disk_leaves_the_profile_as_it_is(filled: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    back_up(filled, "default", QUIET, file)
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises((StoreFull, OSError)):
        bring_back(filled, file)
    monkeypatch.undo()
    assert [path.name for path in filled.iterdir()] == ["profiles"]
    with_runtime(filled, as_it_was)


def no_space(fd: int) -> None:
    import errno

    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_home_without_a_log_is_backed_up(home: Path, file: Path) -> None:
    null = {"backend": "null", "logging.level": "off"}

    async def main() -> None:
        async with memoryd.open_runtime(home, config=null) as rt:
            with memoryd.scope(user="ada", session="s1"):
                await rt.checkpoint(TALK)

    trio.run(main)
    done = back_up(home, "default", QUIET, file)
    assert (done.events, "log.db" in done.files) == (0, False)
    bring_back(home, file)
    assert not (profile_directory(home, "default") / "log.db").exists()
    with_runtime(home, fill)
