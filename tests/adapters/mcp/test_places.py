"""Where a server keeps what it is given: through a daemon, after it, or nowhere at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.blocking import Memory
from memoryd.core import scope
from memoryd.hosts import Place
from memoryd_mcp import host
from tests.adapters.mcp.conftest import Raw, files_with
from tests.daemon.harness import Daemon

WORDS = "quokka"


def memoryd(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "memoryd", *arguments], check=True, capture_output=True, timeout=60)


def test_what_is_kept_out_is_in_no_file(private_home: Path, tmp_path: Path) -> None:
    raw = Raw(tmp_path)
    try:
        raw.shake()
        memoryd("pause")
        _refused(raw, "recording is paused")
        memoryd("resume")
        (tmp_path / ".memoryd-ignore").touch()
        _refused(raw, ".memoryd-ignore is there")
        assert files_with(private_home.parent, WORDS.encode()) == []
        (tmp_path / ".memoryd-ignore").unlink()
        added = raw.call("memory_add", text=f"The {WORDS} lives on Rottnest Island")
        with Memory() as memory, scope(user="default"):
            found = memory.find(added["id"])
        assert found is not None and found.session is not None
        assert found.session.startswith("mcp-2")
        assert found.labels == {"platform": "mcp", "workspace": str(tmp_path)}
        assert raw.end() == (0, b"")
    finally:
        raw.close()
    assert files_with(private_home.parent, WORDS.encode()) != [], "the search would have found it"


def test_a_private_client_adds_nothing(private_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_CAPTURE_PRIVATE", "1")
    raw = Raw()
    try:
        raw.shake()
        _refused(raw, "private")
        assert raw.call("memory_search", query=WORDS)["hits"] == []
    finally:
        raw.close()
    assert files_with(private_home.parent, WORDS.encode()) == []


def _refused(raw: Raw, why: str) -> None:
    assert why in raw.refused("memory_add", text=f"The {WORDS} lives on Rottnest Island")
    assert why in raw.refused("memory_add", key=WORDS, text="Rottnest Island")
    assert why in raw.call("memory_backend", action="store", key=WORDS, value="Rottnest Island")["error"]


def test_through_a_daemon_and_on_without_it(tmp_path: Path, private_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_SOCKET", str(tmp_path / "run/m.sock"))
    with Daemon(tmp_path, home=private_home) as daemon:
        raw = Raw()
        try:
            raw.shake()
            raw.call("memory_add", key="city", text="Oslo")
            assert _holders(private_home / "profiles") == {daemon.pid}, "the server itself has no file open"
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
            raw.call("memory_add", key="river", text="Akerselva")
            assert raw.call("memory_backend", action="list")["keys"] == ["river", "city"]
            assert _holders(private_home / "profiles") == {raw.process.pid}
            assert raw.end() == (0, b"")
        finally:
            raw.close()
        daemon.start()  # the block ends it


def _holders(folder: Path) -> set[int]:
    """The processes that have a file below ``folder`` open."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            names = [os.readlink(process / "fd" / number) for number in os.listdir(process / "fd")]
        except OSError:
            continue
        if any(name.startswith(f"{folder}/") and name.endswith("log.db") for name in names):
            found.add(int(process.name))
    return found


@pytest.mark.parametrize("there", [True, False])
def test_install_says_so_where_the_server_could_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setattr("memoryd_mcp._host.find_spec", lambda name: there or None)
    place = Place(home=tmp_path, cwd=tmp_path, memoryd_home=tmp_path / "m", python=sys.executable)
    said = [note for note in host.plan_install(place).notes if "pip install 'memoryd[mcp]'" in note]
    assert bool(said) is not there


def test_install_says_which_clients_it_looked_for(tmp_path: Path) -> None:
    place = Place(home=tmp_path, cwd=tmp_path, memoryd_home=tmp_path / "m", python=sys.executable)
    plan = host.plan_install(place)
    assert plan.changes == ()
    assert f"Cursor ({tmp_path}/.cursor), Gemini CLI ({tmp_path}/.gemini)" in plan.notes[0]
    (tmp_path / ".cursor").mkdir()
    found = host.plan_install(place)
    assert len(found.changes) == 1
    assert not any("looked for" in note for note in found.notes)
