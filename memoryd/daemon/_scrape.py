"""``--metrics HOST:PORT``: the smallest HTTP that a scraper needs.  ``GET /metrics`` and nothing else; one request a connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from memoryd.errors import ConfigError

__all__ = ["Render", "parse_address", "serve_metrics"]

Render = Callable[[], Awaitable[str]]

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HEAD_BYTES = 8192
_SECONDS = 10.0


def parse_address(text: str) -> tuple[str, int]:
    """``HOST:PORT`` (``[::1]:9100``).  Raises :class:`ConfigError`."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError("--metrics: expected HOST:PORT, such as 127.0.0.1:9100")
    return host.strip("[]"), int(port)


async def serve_metrics(
    host: str, port: int, render: Render, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answer scrapers until cancelled.  ``task_status`` gets the port.  Raises :class:`ConfigError` where it cannot listen there."""
    try:
        listeners = await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        raise ConfigError(f"--metrics: cannot listen on {host}:{port}: {error.strerror}") from None

    async def handle(stream: trio.SocketStream) -> None:
        try:
            with trio.move_on_after(_SECONDS):
                await stream.send_all(await _answer(stream, render))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async with trio.open_nursery() as nursery:
        task_status.started(listeners[0].socket.getsockname()[1])
        await trio.serve_listeners(handle, listeners, handler_nursery=nursery)


async def _answer(stream: trio.SocketStream, render: Render) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head and len(head) <= _HEAD_BYTES:
        more = await stream.receive_some(4096)
        if not more:
            return b""
        head += more
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        return _response("405 Method Not Allowed", "")
    if path != b"/metrics":
        return _response("404 Not Found", "the metrics are at /metrics\n")
    text = await render()
    return _response("200 OK", text, body=method == b"GET")


def _response(status: str, text: str, *, body: bool = True) -> bytes:
    data = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {_TYPE}\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (data if body else b"")
