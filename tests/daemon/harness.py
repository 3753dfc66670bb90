"""A real daemon in a process of its own, and a client that sends whatever bytes a test wants."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import apsw

from memoryd.core import Turn, decode_event
from memoryd.store import profile_directory

__all__ = ["SCOPE", "Daemon", "Raw", "frame", "logged", "until"]

SCOPE = {"user": "ada", "session": "s1"}
ROOT = Path(__file__).parents[2]


class Daemon:
    """``memoryd serve`` below ``folder``.  Leaving the block ends it and shows its standard error where it had failed."""

    def __init__(
        self,
        folder: Path,
        *,
        config: str = "",
        env: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        program: Sequence[str] = ("-m", "memoryd"),
        home: Path | None = None,
    ) -> None:
        self.home = folder / "home" if home is None else home
        self.path = folder / "run/m.sock"
        self._errors = folder / "daemon.err"
        self._env = {**os.environ, **(env or {})}
        self._command = [sys.executable, *program, "serve", "--home", str(self.home), "--socket", str(self.path), *arguments]
        if config:
            self.home.mkdir(parents=True, exist_ok=True)
            (self.home / "memoryd.toml").write_text(config)
        self.process: subprocess.Popen[bytes]
        self.start()

    def start(self) -> None:
        """Returns when it says that it serves."""
        with self._errors.open("ab") as errors:
            self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=errors, env=self._env, cwd=ROOT)
        assert self.process.stdout is not None
        with self.process.stdout as said:
            line = said.readline()
        assert line.startswith(b"serving "), self.errors

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def errors(self) -> str:
        return self._errors.read_text("utf-8", "replace")

    def memory(self) -> int:
        """Bytes of resident memory now."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def client(self, profile: str | None = "default", home: Path | None = None) -> Raw:
        """A connection that has said hello."""
        raw = Raw(self.path)
        raw.hello(profile, None if home is None else str(home))
        return raw

    def check(self) -> None:
        """Alive, and serves a client that comes now."""
        assert self.process.poll() is None, self.errors
        with self.client() as client:
            assert client.call("ping") is None
            found = client.call("store", key="alive", value="yes", scope=SCOPE)
            assert found["accepted"]["state"] == "journaled", found

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float = 60) -> int:
        return self.process.wait(timeout)

    def stop(self) -> None:
        """SIGTERM, and the end that has to follow."""
        self.signal()
        assert self.wait() == 0, self.errors

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        if error is not None:
            sys.stderr.write(self.errors)


def frame(method: str, *, ask: int | str | None = None, **params: Any) -> bytes:
    """A request with ``ask`` as its id, or a notification."""
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if ask is None else {**message, "id": ask}).encode() + b"\n"


class Raw:
    """A connection of plain bytes."""

    def __init__(self, path: Path, timeout: float = 60) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(os.fspath(path))
        self._lines = self.socket.makefile("rb")
        self._last = 0

    def hello(self, profile: str | None = "default", home: str | None = None, protocol: Sequence[int] = (1, 1)) -> dict[str, Any]:
        found: dict[str, Any] = self.call("hello", protocol=list(protocol), client="test", home=home, profile=profile)
        return found

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self) -> Any:
        """The next message, or None at the end."""
        try:
            line = self._lines.readline()
        except ConnectionResetError:
            return None
        return json.loads(line) if line else None

    def call(self, method: str, **params: Any) -> Any:
        """The result; an error is an AssertionError."""
        self._last += 1
        self.send(frame(method, ask=self._last, **params))
        answer = self.read()
        assert answer is not None, f"{method}: the connection ended"
        assert answer["id"] == self._last and "result" in answer, answer
        return answer["result"]

    def turn(self, text: str) -> str:
        """Record one turn; its event id."""
        accepted = self.call("sync_turn", user=text, assistant="noted", scope=SCOPE)
        assert accepted["state"] == "journaled", accepted
        return str(accepted["event_id"])

    def is_closed(self, seconds: float = 30) -> bool:
        """Whether the daemon closes within ``seconds``, whatever it says before."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            ready, _, _ = select.select([self.socket], [], [], 0.1)
            try:
                if ready and not self.socket.recv(1 << 16):
                    return True
            except ConnectionResetError:
                return True
        return False

    def close(self) -> None:
        self._lines.close()
        self.socket.close()

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def logged(home: Path, profile: str = "default") -> dict[str, str]:
    """The turns of the log in their order, event id to the user's text, read through a plain connection; the log has no gap."""
    connection = apsw.Connection(str(profile_directory(home, profile) / "log.db"))
    rows = connection.execute("SELECT seq, event_id, at, kind, payload FROM event ORDER BY seq").fetchall()
    connection.close()
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    events = [decode_event(*row[1:]) for row in rows]
    return {event.event_id.hex(): event.user for event in events if isinstance(event, Turn)}


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for it; a minute is a hang, not a measurement."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
