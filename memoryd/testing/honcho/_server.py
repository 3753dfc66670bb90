"""The stand-in as a server: real HTTP on 127.0.0.1, threads of its own, everything that it ever received kept for looking at."""

from __future__ import annotations

import json
import socket
import time
from collections import deque
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, RLock, Thread
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import attrs

from memoryd.testing.honcho._api import Api, Call, Modes
from memoryd.testing.honcho._faults import Fault
from memoryd.testing.honcho._shapes import ABSENT, ANSWERS, Route, problems, route_of
from memoryd.testing.honcho._store import Refused, Space, Store

__all__ = ["HonchoServer", "Received"]

_JOIN = 5.0  # seconds for a connection's thread to end at stop


@attrs.frozen(slots=True)
class Received:
    """One request as it came in; ``does`` is empty for a route that there is not."""

    method: str
    path: str
    does: str
    headers: str = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)


class HonchoServer:
    """A Honcho server for tests.

    ::

        with HonchoServer() as honcho:
            honcho.faults.append(Fault("late", on="add_messages"))
            ...     # a client that is configured with honcho.url
            assert [message["content"] for message in honcho.messages()] == [...]

    ``faults`` are used up by the requests that they mean; ``modes`` hold until they are changed.  ``stop`` and ``start`` are a restart:
    what was kept stays, at the same address.
    """

    def __init__(self, faults: Iterable[Fault] = (), workspace: str = "memoryd") -> None:
        self.faults = deque(faults)
        self.modes = Modes()
        self.received: list[Received] = []
        self.workspace = workspace
        self._store = Store()
        self._api = Api(self._store, self.modes)
        self._lock = RLock()
        self._released = Event()
        self._port = 0
        self._http: _Http | None = None

    # -- running ----------------------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The address to configure."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen; at the same port as before, if there was one."""
        self._released.clear()
        self._http = _Http(("127.0.0.1", self._port), self)
        self._port = int(self._http.server_address[1])
        self._http.run()

    def stop(self) -> None:
        """End all connections and stop listening.  Requests in hand are released first."""
        http, self._http = self._http, None
        if http is not None:
            self.release()
            http.end()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def release(self) -> None:
        """Let requests go on that a fault holds; those that come later are held again."""
        self._released.set()
        self._released = Event()

    # -- looking ----------------------------------------------------------------------------------------------------------------

    @property
    def space(self) -> Space:
        """The workspace's content, as it is in the database."""
        return self._store.space(self.workspace)

    def messages(self) -> list[dict[str, Any]]:
        """All messages that can be read, session by session, in the order of arrival, copies included."""
        with self._lock:
            return [dict(message) for message in self.space.all_messages()]

    def count(self, does: str) -> int:
        """How many requests did this."""
        return sum(one.does == does for one in self.received)

    def everything_received(self) -> bytes:
        """All bytes of all requests: what left the machine."""
        return b"\n".join(f"{one.method} {one.path}\n{one.headers}\n".encode() + one.body for one in self.received)

    def erase_deleted(self) -> None:
        """The worker comes by: sessions that were deleted are erased."""
        with self._lock:
            self._store.erase_ended()

    def summarise(self, session: str, text: str) -> None:
        """Give a session the summary that the server would have made."""
        with self._lock:
            at = "2026-01-01T00:00:00+00:00"
            summary = {"content": text, "message_id": "", "summary_type": "short", "created_at": at, "token_count": 1}
            self.space.summaries[session] = summary

    # -- answering --------------------------------------------------------------------------------------------------------------

    def take_fault(self, does: str) -> Fault | None:
        """The first fault that meets this request; those before it that skip it count it."""
        with self._lock:
            for at, fault in enumerate(self.faults):
                if fault.on not in ("", does):
                    continue
                if fault.skip:
                    self.faults[at] = attrs.evolve(fault, skip=fault.skip - 1)
                    continue
                if fault.times > 1:
                    self.faults[at] = attrs.evolve(fault, times=fault.times - 1)
                else:
                    del self.faults[at]
                return fault
        return None

    def wait(self) -> None:
        """Until :meth:`release`."""
        self._released.wait()

    def note(self, one: Received) -> None:
        with self._lock:
            self.received.append(one)

    def answer(self, found: tuple[Route, dict[str, str]] | None, path: str, authorization: str, body: bytes) -> tuple[int, bytes]:
        """Status and answer of a request that no fault meets."""
        with self._lock:  # also while the answer is written down: another request may change what it shows
            try:
                status, answer = self._answer(found, path, authorization, body)
            except Refused as refused:
                status, answer = refused.status, {"detail": refused.detail}
            return status, b"" if status == 204 else json.dumps(answer).encode()

    def _answer(self, found: tuple[Route, dict[str, str]] | None, path: str, authorization: str, body: bytes) -> tuple[int, Any]:
        if found is None:
            raise Refused(501 if ABSENT.fullmatch(urlsplit(path).path) else 404, "Not Found")
        route, named = found
        if route.does != "health":
            self._admit(authorization)
        call = Call(named, dict(parse_qsl(urlsplit(path).query)), _checked(route, body))
        answer = self._api.answer(route.does, call)
        if self.modes.worker and route.does != "delete_session":
            self._store.erase_ended()
        _check_answer(route, answer)
        return route.status, answer

    def _admit(self, authorization: str) -> None:
        if self.modes.api_key is not None and authorization != f"Bearer {self.modes.api_key}":
            raise Refused(401, "Invalid API key")
        if not self.modes.database:
            raise Refused(500, "Internal server error")


def _checked(route: Route, body: bytes) -> dict[str, Any]:
    if not route.body:
        return {}
    try:
        given = json.loads(body) if body else {}
    except ValueError:
        raise Refused(422, [{"loc": ["body"], "msg": "json invalid", "type": "json_invalid", "input": {}}]) from None
    given = {} if given is None else given
    wrong = [problem.said() for problem in problems(given, route.body)]
    if wrong:
        raise Refused(422, wrong)
    return dict(given)


def _check_answer(route: Route, answer: Any) -> None:
    """The stand-in keeps to the API's description itself."""
    kind = route.answer.rpartition(" ")[2]
    if not kind:
        return
    things = answer["items"] if route.answer.startswith("Page") else answer if route.answer.startswith("List") else [answer]
    for thing in things:
        missing = set(ANSWERS[kind]) - set(thing)
        assert not missing, f"the answer of {route.does} lacks {missing}"


# -- sockets ----------------------------------------------------------------------------------------------------------------


class _Http(ThreadingHTTPServer):
    """The listening socket, its thread, and the connections."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], honcho: HonchoServer) -> None:
        super().__init__(address, _Handler)
        self.honcho = honcho
        self._thread = Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, name="honcho-stand-in", daemon=True)
        self._open: set[socket.socket] = set()
        self._guard = Lock()
        self._workers: list[Thread] = []

    def run(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self.shutdown()
        self._thread.join(_JOIN)
        self.server_close()
        with self._guard:
            connections, workers = list(self._open), list(self._workers)
        for connection in connections:
            _hang_up(connection)
        for worker in workers:
            worker.join(_JOIN)

    def process_request(self, request: Any, client_address: Any) -> None:
        worker = Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        with self._guard:
            self._open.add(request)
            self._workers = [*filter(Thread.is_alive, self._workers), worker]
            worker.start()

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what half of the tests are about; anything else fails its test by the missing answer."""


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: _Http
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_DELETE = do_PATCH = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: what came in is in ``received``."""

    def _serve(self) -> None:
        honcho = self.server.honcho
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:  # the client hung up in the middle: no request
            return self._leave()
        found = route_of(self.command, urlsplit(self.path).path)
        does = found[0].does if found else ""
        honcho.note(Received(self.command, self.path, does, str(self.headers), body))
        fault = honcho.take_fault(does)
        if fault is not None and self._fails(fault):
            return
        authorization = self.headers.get("Authorization", "")
        if fault is not None and fault.name == "twice":
            honcho.answer(found, self.path, authorization, body)
        status, answer = honcho.answer(found, self.path, authorization, body)
        time.sleep(honcho.modes.latency)
        self._send_as(fault, status, answer)

    def _fails(self, fault: Fault) -> bool:
        """What happens before the request is looked at; True where that was all."""
        if fault.name in ("late", "hang"):
            self.server.honcho.wait()
        match fault.name:
            case "lock":
                self._send(500, b'{"detail": "Internal server error"}')
            case "status":
                extra = () if fault.retry_after is None else (("Retry-After", fault.retry_after),)
                self._send(fault.status, b'{"detail": "try again"}', *extra)
            case "lost" | "hang":
                self._leave()
            case _:
                return False
        return True

    def _send_as(self, fault: Fault | None, status: int, content: bytes) -> None:
        match fault.name if fault is not None else "":
            case "late" | "reset":
                self._leave()
            case "half":
                self._send(status, content, cut=len(content) // 2)
                self._leave()
            case "html":
                self._send(200, b"<html>Welcome to the proxy</html>")
            case "empty":
                self._send(200, b"")
            case "drip":
                self._drip(status, content)
            case _:
                self._send(status, content)

    def _send(self, status: int, content: bytes, *extra: tuple[str, str], cut: int | None = None) -> None:
        lines = [f"HTTP/1.1 {status} -", "Content-Type: application/json", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in extra]
        self.wfile.write("\r\n".join([*lines, "\r\n"]).encode() + content[:cut])
        if status == 500:
            self.close_connection = True  # and nothing said so: the next request on it fails

    def _drip(self, status: int, content: bytes) -> None:
        head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode()
        done = self.server.honcho._released
        for at in range(len(head + content)):
            self.wfile.write((head + content)[at : at + 1])
            done.wait(0.02)

    def _leave(self) -> None:
        self.close_connection = True
        _hang_up(self.connection)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side was faster
