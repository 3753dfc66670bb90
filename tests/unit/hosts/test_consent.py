"""What keeps an agent's session out: pauses, folders, an ignore file, a private session."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memoryd.core import Config, build_config
from memoryd.errors import StoreBroken
from memoryd.hosts import consent, excluded_by, pause, read_pauses, resume, was_paused


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("secret", "/a/secret /a/secret/b", "/a/secrets /a/my-secret /secretary/x"),
        ("secret/", "/a/secret /secret/b", "/a/secrets"),
        ("client-*", "/w/client-acme/src", "/w/client /w/my-client-acme"),
        ("v?", "/v1/x", "/v /v10"),
        ("/w/acme", "/w/acme /w/acme/src", "/w/acmes /x/w/acme /w"),
        ("/w/*/private", "/w/a/private /w/a/private/b", "/w/private /w/a/b/private"),
        ("/w/**/private", "/w/private /w/a/b/private/c", "/x/private"),
        ("~/diary", "/h/me/diary /h/me/diary/2026", "/h/you/diary"),
        ("~", "/h/me /h/me/x", "/h/you"),
        ("acme/src", "/w/acme/src/x", "/w/my-acme/src /w/acme/srcs"),
        ("a.b", "/x/a.b", "/x/aXb"),
        ("dé jà", "/x/dé jà/y", "/x/de ja"),
        ("/", "/ /a /a/b", ""),
        ("[ab]", "/x/[ab]", "/x/a"),
    ],
)
def test_patterns(pattern: str, matching: str, other: str) -> None:
    for cwd in matching.split(" /"):
        assert excluded_by("/" + cwd.removeprefix("/"), [pattern], "/h/me") == pattern
    for cwd in other.split(" /") if other else ():
        assert excluded_by("/" + cwd.removeprefix("/"), ["nothing", pattern], "/h/me") == ""


def config(*exclude: str, private: bool = False) -> Config:
    return build_config({"capture.exclude": list(exclude), "capture.private": private})


def test_a_folder_is_kept_out_by_name_and_by_where_it_leads(tmp_path: Path) -> None:
    real = tmp_path / "secret/src"
    real.mkdir(parents=True)
    link = tmp_path / "open"
    link.symlink_to(real)
    assert consent(str(tmp_path), config("secret"), tmp_path)
    for cwd in (real, link, tmp_path / "secret/deleted"):
        found = consent(str(cwd), config("secret"), tmp_path)
        assert not found
        assert found.why == 'capture.exclude has "secret"'


def test_where_the_folder_is_not_known_nothing_is_recorded_that_might_be_kept_out(tmp_path: Path) -> None:
    assert consent("", config(), tmp_path)
    assert consent("relative", config("secret"), tmp_path).why == "the working directory is not known, and capture.exclude names some"


def test_an_ignore_file_keeps_out_what_is_below_it(tmp_path: Path) -> None:
    deep = tmp_path / "a/b/c"
    deep.mkdir(parents=True)
    assert consent(str(deep), config(), tmp_path)
    (tmp_path / "a/.memoryd-ignore").touch()
    assert consent(str(deep), config(), tmp_path).why == f"{tmp_path}/a/.memoryd-ignore is there"
    assert not consent(str(tmp_path / "a"), config(), tmp_path)
    assert consent(str(tmp_path), config(), tmp_path)
    (tmp_path / ".memoryd-ignore").symlink_to("/nowhere")
    assert not consent(str(tmp_path), config(), tmp_path), "also a link that leads nowhere"


@pytest.mark.parametrize(("value", "allowed"), [("1", False), ("yes", False), ("0", True), ("", True)])
def test_a_private_session(tmp_path: Path, value: str, allowed: bool) -> None:
    assert bool(consent("/", config(), tmp_path, environ={"MEMORYD_PRIVATE": value})) is allowed
    assert not consent("/", config(private=True), tmp_path, environ={"MEMORYD_PRIVATE": value})


def test_a_pause_is_known_afterwards_too(tmp_path: Path) -> None:
    home = tmp_path / "new/home"
    before = time.time_ns() // 1000
    assert resume(home) is False
    assert not home.exists()
    assert consent("/", config(), home)
    pause(home)
    assert (home / "pauses.json").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    within = time.time_ns() // 1000
    assert "memoryd resume" in consent("/", config(), home).why
    assert resume(home) is True
    pauses = read_pauses(home)
    assert [was_paused(pauses, at) for at in (before - 1, within, time.time_ns() // 1000 + 1)] == [False, True, False]
    assert consent("/", config(), home)
    assert not consent("/", config(), home, at=within)


def test_a_pause_ends_by_itself(tmp_path: Path) -> None:
    first = pause(tmp_path, 3600)
    assert first.until is not None
    now = time.time_ns() // 1000
    assert not consent("/", config(), tmp_path)
    assert consent("/", config(), tmp_path, at=now + 3601 * 1_000_000)
    assert pause(tmp_path).since == first.since, "one that goes on is made longer"
    assert [one.until for one in read_pauses(tmp_path)] == [None]


@pytest.mark.parametrize("content", [b"", b"{", b"[[1]]", b'[["x", null]]', b"5", b"\xff"])
def test_a_damaged_file_of_pauses_counts_as_a_pause(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pauses.json").write_bytes(content)
    assert not consent("/", config(), tmp_path)
    resume(tmp_path)
    assert consent("/", config(), tmp_path)


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read_pauses(tmp_path / "file") == ()
    with pytest.raises(StoreBroken, match=os.fspath(tmp_path / "file")):
        pause(tmp_path / "file/home")
