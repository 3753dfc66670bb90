"""The HTTP client below the SDK: certificates read once, a plain body, and the header that the SDK overlooks."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextvars import ContextVar
from functools import cache
from urllib.parse import urlsplit

import httpx

from memoryd_honcho._settings import Settings

__all__ = ["asked_to_wait", "connections", "tls"]

_retry_after: ContextVar[float | None] = ContextVar("honcho_retry_after", default=None)


def connections(settings: Settings) -> httpx.AsyncClient:
    """The client of one backend.  A proxy of the environment is used, but not for a server on this machine."""
    local = urlsplit(settings.url).hostname in ("127.0.0.1", "localhost", "::1")
    return httpx.AsyncClient(
        base_url=settings.url,
        timeout=settings.timeout,
        verify=tls(),
        trust_env=not local,
        event_hooks={"request": [_before], "response": [_after]},
    )


def asked_to_wait() -> float | None:
    """The seconds in ``Retry-After`` of this task's last answer.  The SDK reads that header of a 429 only; a 503 has it, too."""
    return _retry_after.get()


@cache
def tls() -> ssl.SSLContext:
    """Reading the certificates is most of what a client costs: once a process."""
    return httpx.create_ssl_context()


async def _before(request: httpx.Request) -> None:
    _retry_after.set(None)
    request.stream = _Body(request.content)


async def _after(response: httpx.Response) -> None:
    try:
        _retry_after.set(float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return


class _Body(httpx.AsyncByteStream):
    """A body that is no async generator: one that is left half-way, because its connection broke, makes trio complain later."""

    def __init__(self, content: bytes) -> None:
        self._content = [content]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._content:
            raise StopAsyncIteration
        return self._content.pop()
