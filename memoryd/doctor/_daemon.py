"""The daemon, seen from outside: whether one answers at the socket, and of which version."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from memoryd import __version__
from memoryd.core import Value
from memoryd.doctor._verdict import broken, doubtful, fine
from memoryd.errors import ConfigError, MemorydError, ProtocolError
from memoryd.hosts import Check
from memoryd.settings import resolve_socket
from memoryd.wire import Answer, Caller, make_record

__all__ = ["DaemonSeen", "daemon", "one_configuration", "see_daemon"]

_SECONDS = 2.0


@attrs.frozen(slots=True, eq=False, repr=False)
class DaemonSeen(Value):
    """``running`` where something listens at ``socket``; ``pid`` and ``version`` are what it answered.  ``problem`` is empty where it can
    be used."""

    socket: str
    running: bool = False
    pid: int | None = None
    version: str = ""
    problem: str = ""


def see_daemon() -> DaemonSeen:
    """Say hello at the socket, within two seconds.  Nothing is started, no profile is opened; never raises."""
    try:
        path = resolve_socket()
    except ConfigError as error:
        return DaemonSeen("", problem=str(error))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(_SECONDS)
        try:
            line.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return DaemonSeen(str(path))
        except OSError as error:
            return DaemonSeen(str(path), running=True, problem=f"it cannot be reached: {error.strerror or error}")
        return _greeted(path, line)


def _greeted(path: Path, line: socket.socket) -> DaemonSeen:
    try:
        welcome = _hello(line)
    except (OSError, MemorydError) as error:
        return DaemonSeen(str(path), running=True, problem=str(error))
    version = str(welcome.get("server", "")).removeprefix("memoryd ")
    pid = welcome.get("pid")
    problem = "" if version == __version__ else f"it is memoryd {version}, this program is {__version__}"
    return DaemonSeen(str(path), True, pid if isinstance(pid, int) else None, version, problem)


def _hello(line: socket.socket) -> Mapping[str, Any]:
    caller = Caller(make_record)
    line.sendall(caller.hello(None, None))
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        for answer in caller.receive(line.recv(1 << 16)):
            if isinstance(answer, Answer) and isinstance(found := answer.result(), Mapping):
                return found
            raise ProtocolError("what listens at the socket is no daemon of memoryd")
    raise TimeoutError(f"no answer within {_SECONDS:g} s")


def daemon(seen: DaemonSeen) -> Check:
    if not seen.socket:
        return doubtful("daemon", seen.problem, "set MEMORYD_SOCKET to a short path")
    if not seen.running:
        return fine("daemon", f"none at {seen.socket}: every program opens the memory itself")
    if seen.problem and seen.version:
        return doubtful("daemon", seen.problem, "restart it: systemctl --user restart memoryd, or end it and start memoryd serve")
    if seen.problem:
        return broken("daemon", f"{seen.socket}: {seen.problem}", "end the process that has this socket and start memoryd serve")
    return fine("daemon", f"process {seen.pid} serves at {seen.socket}, memoryd {seen.version}")


def one_configuration(seen: DaemonSeen, answered: int) -> Iterator[Check]:
    """``answered`` is the process that a call for the profile reached."""
    if seen.running and not seen.problem and answered != seen.pid:
        said = f"the daemon (process {seen.pid}) sees another configuration than this program, which therefore opened the memory itself"
        yield doubtful("one-configuration", said, "give both the same files and MEMORYD_ variables, and restart the daemon")
