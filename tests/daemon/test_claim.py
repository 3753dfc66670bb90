"""The socket's place: who may serve there, what is replaced, what is left alone."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.daemon._claim import Claim
from memoryd.errors import ConfigError, DaemonRunning
from memoryd.settings import resolve_socket

HOLDER = """
import sys, time
from pathlib import Path
from memoryd.daemon._claim import Claim
claim = Claim(Path(sys.argv[1]))
listener = claim.listen()
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run/memoryd.sock"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_directory_and_socket_are_private(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        claim = Claim(path)
        listener = claim.listen()
    finally:
        os.umask(before)
    assert (mode(path.parent), mode(path), mode(path.with_name("memoryd.sock.lock"))) == (0o700, 0o600, 0o600)
    listener.close()
    claim.release()


def test_the_socket_has_its_mode_before_it_has_its_name(path: Path) -> None:
    """What bind() makes is 0600 already: chmod comes too late for whoever watches the directory."""
    seen: list[int] = []
    real = os.chmod

    def watched(place: os.PathLike[str], bits: int) -> None:
        seen.append(mode(Path(place)))
        real(place, bits)

    claim, before = Claim(path), os.umask(0)
    os.chmod = watched  # type: ignore[assignment]
    try:
        listener = claim.listen()
    finally:
        os.chmod = real
        os.umask(before)
    if sys.platform.startswith("linux"):
        assert seen == [0o600]
    listener.close()
    claim.release()


def test_a_second_daemon_is_refused_and_told_who_is_there(path: Path) -> None:
    first = Claim(path)
    listener = first.listen()
    with pytest.raises(DaemonRunning, match=rf"pid {os.getpid()}, memoryd \d+\.\d+"):
        Claim(path)
    listener.close()
    first.release()
    Claim(path).release()


def test_release_removes_the_socket_and_nothing_else(path: Path) -> None:
    claim = Claim(path)
    claim.listen().close()
    claim.release()
    assert [entry.name for entry in path.parent.iterdir()] == ["memoryd.sock.lock"]


def test_what_kill_9_leaves_is_replaced(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "up\n"
        with pytest.raises(DaemonRunning, match=f"pid {holder.pid},"):
            Claim(path)
        holder.kill()
        holder.wait()
    assert stat.S_ISSOCK(path.lstat().st_mode)
    claim = Claim(path)
    with claim.listen() as listener, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        listener.accept()[0].close()
    claim.release()


def test_a_pid_in_the_lock_file_means_nothing(path: Path) -> None:
    """Stale, reused, or of a process that is not ours: the lock counts, and nobody is asked or signalled."""
    path.parent.mkdir()
    for said in (str(os.getpid()), "1", "999999999", "-1", "\0garbage", "x" * 5000, ""):
        path.with_name("memoryd.sock.lock").write_text(said)
        Claim(path).release()
    assert path.with_name("memoryd.sock.lock").read_text().split()[0] == str(os.getpid())


@pytest.mark.parametrize("kind", ["file", "directory", "fifo", "link"])
def test_what_is_no_socket_is_left_alone(path: Path, kind: str) -> None:
    path.parent.mkdir()
    match kind:
        case "file":
            path.write_text("a diary")
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case _:
            path.symlink_to(path.parent / "elsewhere")
    before = path.lstat()
    claim = Claim(path)
    with pytest.raises(ConfigError, match="in the way and no socket"):
        claim.listen()
    claim.release()
    assert path.lstat() == before


def test_a_socket_where_another_program_listens_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen(0)
        claim = Claim(path)
        with pytest.raises(DaemonRunning, match="another program listens"):
            claim.listen()
        claim.release()
    assert path.exists()


def test_two_starts_at_once_give_one_daemon(path: Path) -> None:
    starts = [subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    try:
        lines = []
        for start in starts:
            assert start.stdout is not None and start.stderr is not None
            lines.append(start.stdout.readline() or start.stderr.read())
    finally:
        for start in starts:
            start.kill()
            start.communicate()
    assert lines.count(b"up\n") == 1
    assert sum(b"DaemonRunning" in line for line in lines) == 3


def test_a_removed_socket_is_noticed_and_made_again(path: Path) -> None:
    claim = Claim(path)
    listener = claim.listen()
    assert claim.is_intact()
    path.unlink()
    assert not claim.is_intact()
    claim.renew()
    claim.listen().close()
    assert claim.is_intact()
    path.with_name("memoryd.sock.lock").unlink()
    assert not claim.is_intact()
    claim.renew()
    assert claim.is_intact()
    with pytest.raises(DaemonRunning):
        Claim(path)
    listener.close()
    claim.release()


def test_after_the_directory_was_removed_only_one_goes_on(path: Path) -> None:
    first = Claim(path)
    first.listen().close()
    for entry in path.parent.iterdir():
        entry.unlink()
    path.parent.rmdir()
    second = Claim(path)
    second.listen().close()
    assert not first.is_intact()
    with pytest.raises(DaemonRunning):
        first.renew()
    first.release()
    assert second.is_intact(), "the one that lost removes nothing of the other's"
    second.release()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(path: Path) -> None:
    path.parent.mkdir()
    os.chown(path.parent, 12345, -1)
    with pytest.raises(ConfigError, match="belongs to user id 12345"):
        Claim(path)


def test_a_directory_that_others_write_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o777)
    with pytest.raises(ConfigError, match="others may write"):
        Claim(path)


def test_where_the_socket_is() -> None:
    runtime = {"XDG_RUNTIME_DIR": "/run/user/7", "HOME": "/home/ada"}
    assert str(resolve_socket(environ=runtime)) == "/run/user/7/memoryd/memoryd.sock"
    assert str(resolve_socket(environ={"HOME": "/home/ada"})) == "/home/ada/.local/state/memoryd/memoryd.sock"
    assert str(resolve_socket(environ={**runtime, "MEMORYD_SOCKET": "~/m.sock"})) == "/home/ada/m.sock"
    assert str(resolve_socket("/tmp/x.sock", environ={**runtime, "MEMORYD_SOCKET": "/y"})) == "/tmp/x.sock"
    assert str(resolve_socket(environ={**runtime, "XDG_RUNTIME_DIR": "relative"})) == "/home/ada/.local/state/memoryd/memoryd.sock"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of Linux")
def test_a_path_of_107_bytes_serves_and_one_of_108_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    longest = folder / ("s" * (107 - len(str(folder)) - 1))
    claim = Claim(resolve_socket(longest))
    with claim.listen(), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(longest))
    claim.release()
    with pytest.raises(ConfigError, match="has 108 bytes, 107 are possible; set MEMORYD_SOCKET"):
        resolve_socket(f"{longest}s")
