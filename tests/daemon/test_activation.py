"""What a service manager may hand over, and what it is told."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.daemon._activation import Notifier, inherited_sockets

TAKE = """
import os, socket, sys
from memoryd.daemon._activation import inherited_sockets
from memoryd.errors import ConfigError
os.dup2(int(sys.argv[1]), 3)
environ = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": sys.argv[2], "LISTEN_FDNAMES": "x"}
try:
    found = inherited_sockets(environ)
    print([one.getsockname() for one in found], environ, [os.get_inheritable(one.fileno()) for one in found])
except ConfigError as error:
    print(error)
"""


def taken(descriptor: int, count: str = "1") -> str:
    command = [sys.executable, "-c", TAKE, str(descriptor), count]
    return subprocess.run(command, pass_fds=[descriptor], capture_output=True, text=True, check=True).stdout.strip()


def test_a_listening_socket_is_taken_and_no_child_takes_it_again(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        assert taken(listener.fileno()) == f"[{path!r}] {{}} [False]"


def test_what_is_no_listening_unix_socket_is_refused_in_one_line(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as quiet, socket.socket() as tcp, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        quiet.bind(str(tmp_path / "quiet"))
        datagrams.bind(str(tmp_path / "datagrams"))
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        for one in (quiet, tcp, datagrams):
            assert "descriptor 3 is no listening unix socket" in taken(one.fileno())
    with (tmp_path / "file").open("w") as file:
        assert "descriptor 3 is no socket" in taken(file.fileno())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has addresses without a file")
def test_a_socket_without_a_path_is_refused() -> None:
    with socket.socket(socket.AF_UNIX) as nameless:
        nameless.bind(f"\0memoryd-test-{os.getpid()}")
        nameless.listen()
        assert "is no listening unix socket" in taken(nameless.fileno())


@pytest.mark.parametrize(("pid", "count"), [("1", "1"), ("", "1"), ("me", ""), ("me", "x"), ("me", "-1"), ("me", "0")])
def test_what_is_meant_for_another_process_is_left(pid: str, count: str) -> None:
    environ = {"LISTEN_PID": str(os.getpid()) if pid == "me" else pid, "LISTEN_FDS": count}
    assert inherited_sockets(environ) == []
    assert environ == {}


@pytest.mark.parametrize("address", ["path", "abstract"])
def test_states_are_told(tmp_path: Path, address: str) -> None:
    if address == "abstract" and not sys.platform.startswith("linux"):
        pytest.skip("only Linux has addresses without a file")
    name = str(tmp_path / "notify") if address == "path" else f"@memoryd-notify-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0"))
        environ = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "3000000"}
        notifier = Notifier(environ)
        assert environ == {} and notifier.watchdog == 1.5
        notifier.ready("serving")
        notifier.alive()
        notifier.stopping(10)
        told = [manager.recv(1000).decode().split("\n") for _ in range(3)]
    assert told[0] == ["READY=1", "STATUS=serving", f"MAINPID={os.getpid()}"]
    assert told[1] == ["WATCHDOG=1"]
    assert told[2] == ["STOPPING=1", "STATUS=draining", "EXTEND_TIMEOUT_USEC=15000000"]


def test_without_a_manager_nothing_happens(tmp_path: Path) -> None:
    for environ in ({}, {"NOTIFY_SOCKET": str(tmp_path / "gone")}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_PID": "1", "WATCHDOG_USEC": "5"}):
        notifier = Notifier(environ)
        assert notifier.watchdog is None
        notifier.ready("serving")
        notifier.alive()
