from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.errors import (
    InvalidInput,
    PlatformUnsupported,
    ProfileMismatch,
    StoreBroken,
    StoreCorrupt,
    StoreLocked,
    StoreReadOnly,
)
from memoryd.store import Schema, open_profile, prepare, profile_directory, require_platform

NAMES = ["default", "../x", "/etc/passwd", "..", "a\0b", "x" * 500, "\ud800", "😀" * 500, " ", "CON", "Ünïcode", "unıcode", "a/b\\c"]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_one_safe_directory_that_knows_it(tmp_path: Path, name: str) -> None:
    profile = open_profile(tmp_path, name)
    assert profile.directory.parent == tmp_path / "profiles"
    assert len(profile.directory.name) == 26
    assert profile.directory.name == profile.directory.name.lower()
    assert json.loads((profile.directory / "profile.json").read_bytes())["name"] == profile.name == name
    assert len(profile.key) == 32
    assert open_profile(tmp_path, name) == profile


def test_names_never_share_a_directory() -> None:
    assert len({profile_directory(Path("home"), name) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", ["", "x" * 501, None, 7, b"default"])
def test_a_name_outside_the_limits_writes_nothing(tmp_path: Path, name: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_profile(tmp_path, name)  # type: ignore[arg-type]
    assert caught.value.field == "profile"
    assert not list(tmp_path.iterdir())


def test_profiles_differ_in_key_and_instance(tmp_path: Path) -> None:
    one, two = open_profile(tmp_path, "one"), open_profile(tmp_path, "two")
    assert one.key != two.key
    assert one.instance != two.instance


def test_the_key_is_not_shown(tmp_path: Path) -> None:
    profile = open_profile(tmp_path, "default")
    assert repr(profile.key) not in repr(profile)


OPEN = """
import sys
from pathlib import Path
from memoryd.store import Schema, open_profile, prepare
sys.stdin.read()
profile = open_profile(Path(sys.argv[1]), "default")
prepare(profile.directory / "notes.db", Schema("notes", ("CREATE TABLE note (id INTEGER PRIMARY KEY)",)), profile)
print(profile.instance, profile.key.hex())
"""


def test_processes_that_create_one_profile_at_once_agree(tmp_path: Path) -> None:
    for attempt in range(3):
        home = tmp_path / str(attempt)
        command = [sys.executable, "-c", OPEN, str(home)]
        racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(5)]
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.close()  # the start signal
            racer.stdin = None
        answers = {racer.communicate()[0] for racer in racers}
        assert [racer.returncode for racer in racers] == [0] * 5
        profile = open_profile(home, "default")
        assert answers == {f"{profile.instance} {profile.key.hex()}\n".encode()}
        assert {f.name for f in profile.directory.iterdir()} == {"profile.json", "profile.key", "notes.db"}


def test_a_copied_directory_is_refused(tmp_path: Path) -> None:
    first = open_profile(tmp_path, "first")
    first.directory.rename(profile_directory(tmp_path, "second"))
    with pytest.raises(ProfileMismatch) as caught:
        open_profile(tmp_path, "second")
    assert str(profile_directory(tmp_path, "second")) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"name": 1, "instance": "x"}', b"\xff\xfe", b'{"name": "default"}'])
def test_a_damaged_identity_is_corruption(tmp_path: Path, content: bytes) -> None:
    profile = open_profile(tmp_path, "default")
    (profile.directory / "profile.json").write_bytes(content)
    with pytest.raises(StoreCorrupt, match="profile.json"):
        open_profile(tmp_path, "default")


@pytest.mark.parametrize("content", [None, b"", b"short", b"x" * 33])
def test_a_lost_key_is_never_replaced(tmp_path: Path, content: bytes | None) -> None:
    key = open_profile(tmp_path, "default").directory / "profile.key"
    key.unlink()
    if content is not None:
        key.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="profile.key"):
        open_profile(tmp_path, "default")
    assert not key.exists() or key.read_bytes() == content


def test_a_creation_cut_short_is_finished(tmp_path: Path) -> None:
    profile = open_profile(tmp_path, "default")
    (profile.directory / "profile.json").unlink()
    again = open_profile(tmp_path, "default")
    assert again.key == profile.key


def test_an_identity_that_is_gone_is_not_made_up_beside_stores(tmp_path: Path) -> None:
    profile = open_profile(tmp_path, "default")
    prepare(profile.directory / "log.db", Schema("log", ("CREATE TABLE t (x)",)), profile)
    (profile.directory / "profile.json").unlink()
    with pytest.raises(StoreBroken, match="memoryd repair"):
        open_profile(tmp_path, "default")


def test_a_creator_that_stands_still_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    from memoryd.store import _moves, private_directory

    monkeypatch.setattr(_moves, "PATIENCE", 0.05)
    directory = profile_directory(tmp_path, "default").parent
    private_directory(directory)
    holder = os.open(directory, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    with pytest.raises(StoreLocked, match="being changed by another process"):
        open_profile(tmp_path, "default")
    os.close(holder)
    assert open_profile(tmp_path, "default").name == "default"


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a directory")
    with pytest.raises(StoreBroken, match="home"):
        open_profile(tmp_path / "home", "default")


def test_a_foreign_owner_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = open_profile(tmp_path, "default").directory
    owner = directory.stat().st_uid
    if os.geteuid() == 0:
        os.chown(directory, 12345, 12345)
        owner = 12345
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(StoreReadOnly, match=f"belongs to user id {owner}"):
        open_profile(tmp_path, "default")


def test_windows_ends_in_one_line() -> None:
    with pytest.raises(PlatformUnsupported) as caught:
        require_platform("nt")
    assert "Linux and macOS" in str(caught.value)
    assert "\n" not in str(caught.value)
    require_platform("posix")


def test_the_package_can_be_imported_where_it_does_not_run() -> None:
    """What Windows lacks is taken away: the import has to work, so that the one line above can be said."""
    program = "import os, random, sys; del os.fdatasync, os.register_at_fork; sys.modules['fcntl'] = None; import memoryd.store"
    subprocess.run([sys.executable, "-c", program], check=True)
