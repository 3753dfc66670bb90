"""The daemon: round trips, throughput, notifications, memory, start; against a blocking-thread echo and the same calls over HTTP.

Every client is a plain blocking socket of this process, so that all servers are measured by the same one.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from _figures import figure, interleave, median, texts

HERE = Path(__file__).parent
CORPUS = list(texts(200, low=8, high=14))
SCOPE = {"user": "ada", "session": "s1", "agent": "a" * 420}  # a request of 550 bytes
PARTS = "import trio, apsw, attrs, msgspec, click"
ENV = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def server(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program that prints one line when it serves."""
    with subprocess.Popen([sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, env=ENV) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            yield process
        finally:
            process.terminate()
            process.wait()


class Lines:
    """A client that waits for one line a request."""

    def __init__(self, path: Path, *, hello: bool = True) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        if hello:
            self.ask(request("hello", 0, protocol=[1, 1], client="bench", home=None, profile="default"))

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def wait(self) -> bytes:
        data = self.socket.recv(1 << 16)
        while not data.endswith(b"\n"):
            data += self.socket.recv(1 << 16)
        return data

    def ask(self, data: bytes) -> bytes:
        self.send(data)
        return self.wait()


class Http(Lines):
    """A client that keeps its connection and does as little as HTTP allows."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, hello=False)

    def wait(self) -> bytes:
        data = self.socket.recv(1 << 16)
        while b"\r\n\r\n" not in data:
            data += self.socket.recv(1 << 16)
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += self.socket.recv(1 << 16)
        assert head.startswith(b"HTTP/1.1 200"), head
        return body


def request(method: str, id: int | None, **params: Any) -> bytes:
    head = {"jsonrpc": "2.0"} if id is None else {"jsonrpc": "2.0", "id": id}
    return json.dumps({**head, "method": method, "params": params}).encode() + b"\n"


def post(method: str, **params: Any) -> bytes:
    body = json.dumps(params).encode()
    return b"POST /%b HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        method.encode(), len(body), body,
    )  # fmt: skip


def p50(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us"


def round_trips(daemon: Path, http: Path, echo: Path) -> list[dict[str, Any]]:
    """One client, one request after the other."""
    ours, peer, floor = Lines(daemon), Http(http), Lines(echo, hello=False)
    ping, http_ping = request("ping", 1, scope=SCOPE), post("ping", scope=SCOPE)
    turn = request("sync_turn", 1, user=CORPUS[0], assistant="Noted.", scope=SCOPE)
    http_turn = post("sync_turn", user=CORPUS[0], assistant="Noted.", scope=SCOPE)
    steps: dict[str, Callable[[], object]] = {
        "ping": lambda: ours.ask(ping), "http_ping": lambda: peer.ask(http_ping), "echo": lambda: floor.ask(ping),
        "turn": lambda: ours.ask(turn), "http_turn": lambda: peer.ask(http_turn),
    }  # fmt: skip
    found: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(20):
        for name, step in steps.items():  # blocks of one kind: a burst is what a daemon meets
            found[name] += interleave(100, step=step)["step"]
    got = {name: median(times) for name, times in found.items()}
    detail = ", ".join(f"{name} {p50(seconds)}" for name, seconds in got.items())
    return [
        figure("daemon round trip (ping, 550 B) / blocking-thread echo, p50", 5, 4, got["ping"] / got["echo"], "x", detail),
        figure("ping over HTTP / daemon round trip, p50", 5, 10, got["http_ping"] / got["ping"], "x", detail, higher=True),
        figure("sync_turn over HTTP / over the daemon's socket, p50", 5, 10, got["http_turn"] / got["turn"], "x", detail, higher=True),
    ]


def in_flight(clients: Sequence[Lines], rounds: int, data: bytes) -> float:
    """Requests a second of clients that each wait for one answer."""
    start = time.perf_counter()
    for _ in range(rounds):
        for client in clients:
            client.send(data)
        for client in clients:
            client.wait()
    return rounds * len(clients) / (time.perf_counter() - start)


def throughput(daemon: Path, http: Path) -> list[dict[str, Any]]:
    ours, peers = [Lines(daemon) for _ in range(16)], [Http(http) for _ in range(16)]
    turn = request("sync_turn", 1, user=CORPUS[1], assistant="Noted.", scope=SCOPE)
    http_turn = post("sync_turn", user=CORPUS[1], assistant="Noted.", scope=SCOPE)
    rates: dict[str, list[float]] = {"ours": [], "http": []}
    for _ in range(5):
        rates["ours"].append(in_flight(ours, 100, turn))
        rates["http"].append(in_flight(peers, 25, http_turn))
    got, peer_rate = median(rates["ours"]), median(rates["http"])
    detail = f"{got:.0f}/s; HTTP {peer_rate:.0f}/s"
    return [figure("acknowledged sync_turn of 16 clients / over HTTP", 3, 5, got / peer_rate, "x", detail, higher=True)]


def notifications(daemon: Path, echo: Path) -> list[dict[str, Any]]:
    """16 clients send turns that nobody acknowledges, until each has been told that all of its own were taken."""
    scope = {"user": "ada", "session": "s2"}
    frames = [request("sync_turn", None, user=text, assistant="Noted.", scope=scope) for text in CORPUS]
    block, last = b"".join(frames), request("ping", 1)
    ours, floors = [Lines(daemon) for _ in range(16)], [Lines(echo, hello=False) for _ in range(16)]
    rates: list[float] = []
    ceilings: list[float] = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(10):
            for client in ours:
                client.send(block)
        for client in ours:
            client.ask(last)
        rates.append(16 * 10 * len(frames) / (time.perf_counter() - start))
        start = time.perf_counter()
        for _ in range(10):
            for one in frames[:50]:
                for client in floors:
                    client.send(one)
                for client in floors:
                    client.wait()
        ceilings.append(16 * 10 * 50 / (time.perf_counter() - start))
        time.sleep(0.5)
    rate, ceiling = median(rates), median(ceilings)
    detail = f"{rate / ceiling:.2f}x of an echo of each ({ceiling:.0f}/s)"
    return [figure("sync_turn notifications of 16 clients", 20_000, None, rate, "/s", detail, higher=True)]


def memory(pid: int) -> float:
    """Resident megabytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def idle_memory(directory: Path) -> list[dict[str, Any]]:
    path = directory / "idle/m.sock"
    with server("-m", "memoryd", "serve", "--home", directory / "idle-home", "--socket", path) as daemon:
        empty = memory(daemon.pid)
        client = Lines(path)
        client.ask(request("sync_turn", 1, user=CORPUS[0], assistant="Noted.", scope=SCOPE))
        client.ask(request("recall", 2, query=CORPUS[0], scope=SCOPE))
        client.socket.close()
        time.sleep(3)
        got = memory(daemon.pid)
    return [figure("idle daemon, one profile open, resident", 45, 38, got, " MB", f"before the first profile {empty:.0f} MB")]


def start(directory: Path) -> list[dict[str, Any]]:
    """From exec to the line that says that it serves, against a process that only imports what it stands on."""
    path = directory / "start/m.sock"
    found: dict[str, list[float]] = {"ready": [], "answered": [], "parts": []}
    for _ in range(10):
        begun = time.perf_counter()
        with server("-m", "memoryd", "serve", "--home", directory / "start-home", "--socket", path):
            found["ready"].append(time.perf_counter() - begun)
            Lines(path).socket.close()
            found["answered"].append(time.perf_counter() - begun)
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", PARTS], check=True, env=ENV)
        found["parts"].append(time.perf_counter() - begun)
    ready, answered, parts = (median(times[1:]) for times in found.values())  # the first one compiles
    detail = (
        f"{ready * 1e3:.0f} ms; first client's profile open after {answered * 1e3:.0f} ms; "
        f"a process that imports {PARTS.removeprefix('import ')} {parts * 1e3:.0f} ms"
    )
    return [figure("daemon, start to ready / import of its parts", 1.5, 1.2, ready / parts, "x", detail)]


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        directory = Path(scratch)
        daemon, http, echo = directory / "d/m.sock", directory / "h.sock", directory / "e.sock"
        stack.enter_context(server("-m", "memoryd", "serve", "--home", directory / "home", "--socket", daemon))
        stack.enter_context(server(HERE / "http_peer.py", http, directory / "http-home"))
        stack.enter_context(server(HERE / "echo_peer.py", echo))
        figures = round_trips(daemon, http, echo) + throughput(daemon, http) + notifications(daemon, echo)
        stack.close()
        return figures + idle_memory(directory) + start(directory)
