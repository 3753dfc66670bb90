"""Renames that belong together: whatever is done of them when a process dies, the next one does the rest."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from memoryd.errors import StoreCorrupt, StoreLocked
from memoryd.store import (
    Options,
    ProfileStore,
    Schema,
    alone,
    connect,
    finish_moves,
    locked_directory,
    move_all,
    open_profile,
    prepare,
)

NOTES = Schema("notes", ("CREATE TABLE note (id INTEGER PRIMARY KEY)",))


def make(root: Path) -> list[tuple[Path, Path]]:
    """A directory in use, the one that replaces it, and a file in each; the renames of a replacement."""
    for name in ("now", "new"):
        (root / name).mkdir()
        (root / name / "file").write_text(name)
    (root / "note").write_text("old")
    (root / "note.next").write_text("fresh")
    return [
        (root / "now", root / "aside"), (root / "new", root / "now"), (root / "note", root / "note.was"), (root / "note.next", root / "note"),
    ]  # fmt: skip


def check(root: Path) -> None:
    assert {path.name for path in root.iterdir()} == {"now", "aside", "note", "note.was"}
    assert [(root / name).read_text() for name in ("now/file", "aside/file", "note", "note.was")] == ["new", "now", "fresh", "old"]


def test_all_are_done(tmp_path: Path) -> None:
    move_all(tmp_path, make(tmp_path))
    check(tmp_path)
    finish_moves(tmp_path)
    check(tmp_path)


@pytest.mark.parametrize("done", range(5))
def test_a_crash_after_any_of_them_is_finished(tmp_path: Path, done: int) -> None:
    steps = make(tmp_path)
    (tmp_path / "moving.json").write_text(json.dumps([[str(source), str(target)] for source, target in steps]))
    for source, target in itertools.islice(steps, done):
        source.rename(target)
    finish_moves(tmp_path)
    check(tmp_path)


def test_a_target_that_somebody_made_meanwhile_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "file").write_text("theirs")
    move_all(tmp_path, [(tmp_path / "a", tmp_path / "b")])
    assert (tmp_path / "b" / "file").read_text() == "theirs"
    assert (tmp_path / "a").is_dir()


def test_a_damaged_record_is_named_and_kept(tmp_path: Path) -> None:
    (tmp_path / "moving.json").write_text("{")
    with pytest.raises(StoreCorrupt, match="moving.json"):
        finish_moves(tmp_path)
    assert (tmp_path / "moving.json").exists()


def test_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.store._moves.PATIENCE", 0.05)
    with locked_directory(tmp_path), pytest.raises(StoreLocked):
        move_all(tmp_path, [])


# -- a profile for oneself ---------------------------------------------------------------------------------------------------


@pytest.fixture
def profile(tmp_path: Path) -> ProfileStore:
    profile = open_profile(tmp_path, "default")
    prepare(profile.directory / "notes.db", NOTES, profile)
    return profile


def test_an_open_store_is_seen(profile: ProfileStore) -> None:
    connection = connect(profile.directory / "notes.db", Options())
    with pytest.raises(StoreLocked, match="in use"), alone(profile.directory):
        pass
    connection.close()
    with alone(profile.directory):
        inside = connect(profile.directory / "notes.db", Options())  # who is alone may open them
        inside.close()


def test_two_are_not_alone(profile: ProfileStore) -> None:
    with alone(profile.directory):
        with pytest.raises(StoreLocked, match="by another process"), alone(profile.directory):
            pass
        connect(profile.directory / "notes.db", Options()).close()
    with alone(profile.directory):
        pass
