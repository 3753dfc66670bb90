"""``memoryd backup``, ``restore``, ``repair`` and ``profiles`` as a person and a program see them."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryd.core import profile_folder
from memoryd.store import profile_directory

Run = Callable[..., Any]
SHELF = Path(__file__).parents[1] / "crash/shelf.py"


@pytest.fixture
def city(memoryd: Run) -> None:
    assert memoryd("store", "city", "Oslo").code == 0
    assert memoryd("store", "city", "Rome", "--profile", "it's work").code == 0


def test_a_backup_comes_back(memoryd: Run, city: None, private_home: Path, tmp_path: Path) -> None:
    file = tmp_path / "my backup"
    done = memoryd("backup", str(file))
    assert (done.code, done.err) == (0, "")
    assert done.out == f"backed up profile default: 1 events, {file.stat().st_size} bytes, in {file}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    memoryd("store", "city", "Bergen")
    memoryd("store", "pet", "cat")
    assert memoryd("forget", "--key", "city", "--yes").out.splitlines()[1].startswith(f"warning: {file} is a backup")
    back = memoryd("restore", str(file))
    lines = back.out.splitlines()
    assert back.code == 0
    assert lines[0].startswith("restored profile default: 1 events, as of 20")
    assert lines[1] == "forgotten again 1: what was forgotten after the backup"
    assert lines[2].startswith("kept ")
    assert memoryd("get", "city").code == 1
    assert memoryd("get", "pet").code == 1
    answer = memoryd("restore", str(file), "--profile", "again", "--json").json
    assert (answer["profile"], answer["backup_of"], answer["forgets"], answer["kept"]) == ("again", "default", 1, "")


def test_every_profile_is_backed_up_by_one_command(memoryd: Run, city: None, private_home: Path, tmp_path: Path) -> None:
    answer = memoryd("backup", "--all-profiles", str(tmp_path / "all"), "--json").json
    assert [(one["profile"], one["events"]) for one in answer["backups"]] == [("default", 1), ("it's work", 1)]
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == sorted(
        f"{profile_folder(name)}.memoryd-backup" for name in ("default", "it's work")
    )
    work = tmp_path / "all" / f"{profile_folder('it' + chr(39) + 's work')}.memoryd-backup"
    assert memoryd("restore", str(work), "--home", str(tmp_path / "elsewhere")).code == 0
    assert memoryd("get", "city", "--home", str(tmp_path / "elsewhere"), "--profile", "it's work").out == "Rome\n"


@pytest.mark.parametrize("content", [b"", b"no tar", b"\0" * 10_240])
def test_what_is_no_backup_is_refused_in_one_line(memoryd: Run, city: None, private_home: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    done = memoryd("restore", str(tmp_path / "file"))
    assert (done.code, done.out) == (1, "")
    assert "is no backup of memoryd" in done.err
    assert memoryd("get", "city").out == "Oslo\n"


def test_wrong_names_and_places_exit_one(memoryd: Run, city: None, private_home: Path, tmp_path: Path) -> None:
    for words in (
        ["restore", str(tmp_path / "nowhere")], ["backup", str(tmp_path / "no" / "where")], ["backup", str(tmp_path)],
        ["backup", str(tmp_path / "x"), "--profile", "nobody"], ["repair", "--profile", "nobody"], ["profiles", "create", "default"],
        ["profiles", "copy", "nobody", "x"], ["profiles", "rename", "default", "it's work"], ["profiles", "delete", "nobody", "--yes"],
    ):  # fmt: skip
        done = memoryd(*words, "--json")
        assert done.code == 1, words
        assert done.err.startswith("memoryd: ")
        assert done.json["error"]["message"]
    assert not profile_directory(private_home, "nobody").exists()


def test_profiles_are_listed_made_moved_and_deleted(memoryd: Run, city: None, private_home: Path) -> None:
    assert memoryd("profiles", "create", "third").out == f"created profile third in {profile_directory(private_home, 'third')}\n"
    answer = memoryd("profiles", "list", "--json").json
    assert [one["name"] for one in answer["profiles"]] == ["default", "it's work", "third"]
    assert answer["count"] == 3
    assert memoryd("profiles", "copy", "default", "copy").out == "copied profile default to copy: 1 events\n"
    assert memoryd("profiles", "rename", "copy", "moved").out == "renamed profile copy to moved\n"
    assert memoryd("get", "city", "--profile", "moved").out == "Oslo\n"
    assert memoryd("profiles", "delete", "moved").code == 64, "nobody can be asked here"
    assert memoryd("profiles", "delete", "moved", "--yes").out.startswith("deleted profile moved: ")
    assert memoryd("profiles", "rekey", "default", "--yes").out.startswith("renewed the key of profile default: 1 events\nkept ")
    assert memoryd("get", "city").out == "Oslo\n"
    assert [line.split("\t")[0] for line in memoryd("profiles", "list").out.splitlines()] == ["default", "it's work", "third"]
    (profile_directory(private_home, "third") / "profile.json").write_text("{")
    torn = memoryd("profiles", "list")
    assert torn.code == 1
    assert "memoryd repair" in torn.out


def test_a_question_is_asked_on_a_terminal(memoryd: Run, city: None, private_home: Path) -> None:
    import pty

    for answer, code in ((b"n\n", 130), (b"y\n", 0)):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(sys.executable, [sys.executable, "-m", "memoryd", "profiles", "delete", "it's work"])
        said = b""
        while b"[y/N]" not in said:
            said += os.read(terminal, 1024)
        os.write(terminal, answer)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
        os.close(terminal)
        assert (len(memoryd("profiles", "list").out.splitlines()) == 1) is (code == 0)


def test_repair_says_what_it_finds_and_does(memoryd: Run, city: None, private_home: Path) -> None:
    assert (memoryd("repair").out, memoryd("repair", "--json").json["ok"]) == ("nothing is wrong\n", True)
    directory = profile_directory(private_home, "default")
    for path in directory.glob("log.db*"):
        path.unlink()
    status = memoryd("status", "--json")
    assert "memoryd repair" in str(status.json)
    looked = memoryd("repair", "--dry-run")
    assert (looked.code, looked.out) == (1, "log.db: it is gone: would be begun anew, empty; a backup has what was in it\n")
    assert not (directory / "log.db").exists()
    done = memoryd("repair", "--json")
    assert done.code == 1, "something is lost"
    assert [finding["file"] for finding in done.json["findings"]] == ["log.db"]
    assert memoryd("repair").code == 0
    assert memoryd("get", "city").out == "Oslo\n", "what the projection knows is still there"
    (directory / "memory.db").write_bytes(b"no database" * 999)
    memoryd("store", "pet", "cat")
    mended = memoryd("repair")
    assert mended.code == 0
    assert mended.out.splitlines()[0].startswith("memory.db: ")
    assert memoryd("get", "pet").out == "cat\n"


def test_a_profile_in_use_is_named(memoryd: Run, city: None, private_home: Path, tmp_path: Path) -> None:
    from memoryd.blocking import Memory

    memoryd("backup", str(tmp_path / "b"))
    with Memory(str(private_home)):
        for words in (["restore", str(tmp_path / "b")], ["repair"], ["profiles", "delete", "default", "--yes"]):
            done = memoryd(*words)
            assert done.code == 1
            assert "is in use" in done.err
        assert memoryd("backup", str(tmp_path / "b")).code == 0
        assert memoryd("repair", "--dry-run").code == 0


def test_every_profile_is_exported_and_replayed(memoryd: Run, city: None, private_home: Path, tmp_path: Path) -> None:
    answer = memoryd("export", "--all-profiles", "--all-users", str(tmp_path / "all"), "--json").json
    assert [(one["profile"], one["events"], Path(one["file"]).is_file()) for one in answer["exports"]] == [
        ("default", 1, True), ("it's work", 1, True),
    ]  # fmt: skip
    assert memoryd("export", "--all-profiles").code == 64
    (private_home / "plugins").mkdir()
    shutil.copy(SHELF, private_home / "plugins/shelf.py")
    (private_home / "memoryd.toml").write_text(f'[backends.shelf]\npath = "{tmp_path}/shelf.jsonl"\n', "utf-8")
    done = memoryd("replay", "--to", "shelf", "--all-profiles")
    assert done.out == "profile default: sent 1 events to shelf, up to 1\nprofile it's work: sent 1 events to shelf, up to 1\n"
    again = memoryd("replay", "--to", "shelf", "--all-profiles", "--json").json
    assert [(one["profile"], one["sent"]) for one in again["replays"]] == [("default", 0), ("it's work", 0)]
