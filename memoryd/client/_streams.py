"""Connections of a trio client: one call at a time on each, kept for the next call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import trio

from memoryd.client._attempts import OPENING, Attempts, too_large
from memoryd.client._link import Place, away, check_peer
from memoryd.errors import ClosedError, ConnectionLost, DaemonError, DaemonUnavailable, MemorydError
from memoryd.wire import Answer, Caller, Progress, dump, load, make_record

__all__ = ["Streams", "new_caller"]

_IDLE = 8
_CHUNK = 65_536


def _make(name: str, fields: Mapping[str, Any]) -> Any:
    if name == "DeadLetter":
        from memoryd.journal import DeadLetter  # not above: it loads SQLite, which a client has no other use for

        known = {field.name for field in attrs.fields(DeadLetter)}
        return DeadLetter(**{field: value for field, value in fields.items() if field in known})
    return make_record(name, fields)


def new_caller() -> Caller:
    """The protocol of one connection, with values of :mod:`memoryd.core`."""
    return Caller(_make, dump=dump, load=load)


class _Stream:
    """One connection that was greeted."""

    def __init__(self, place: Place, stream: trio.SocketStream) -> None:
        self._place = place
        self._stream = stream
        self._caller = new_caller()
        self._limits: Mapping[str, int] = {}

    @property
    def is_usable(self) -> bool:
        return self._caller.state == "open" and self._stream.socket.fileno() >= 0

    async def greet(self) -> None:
        await self._send(self._caller.hello(self._place.home, self._place.profile))
        [welcome] = [one for one in await self._some() if isinstance(one, Answer)]
        self._limits = welcome.result().get("limits", {})

    async def call(
        self, method: str, arguments: Mapping[str, Any], on_progress: Callable[[Progress], None], common: Mapping[str, Any]
    ) -> Any:
        id, frame = self._caller.call(method, arguments, **common)
        too_large(method, len(frame), self._limits)
        await self._send(frame)
        while True:
            for found in await self._some():
                if isinstance(found, Progress):
                    on_progress(found)
                elif found.id == id:
                    return found.result()

    async def _send(self, frame: bytes) -> None:
        try:
            await self._stream.send_all(frame)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ConnectionLost("the connection to the daemon broke") from error

    async def _some(self) -> list[Answer | Progress]:
        while True:
            try:
                data = await self._stream.receive_some(_CHUNK)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise ConnectionLost("the connection to the daemon broke") from error
            if found := self._caller.receive(data):
                return found

    def close(self) -> None:
        self._stream.socket.close()


class Streams:
    """As many connections as there are calls at once; a few are kept."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._idle: list[_Stream] = []
        self.closed = False

    async def call(
        self,
        method: str,
        arguments: Mapping[str, Any],
        attempts: Attempts,
        on_progress: Callable[[int, int], None] | None,
        **common: Any,
    ) -> Any:
        """One try of a call.  Raises what the method raises, :class:`trio.TooSlowError` at ``attempts.until``."""
        if self.closed:
            raise ClosedError("this client is closed: open it again")
        with trio.fail_at(attempts.until) as deadline:
            stream = self._idle.pop() if self._idle else await self._connect()

            def heard(progress: Progress) -> None:
                attempts.heard(trio.current_time())
                deadline.deadline = attempts.until
                if on_progress is not None:
                    on_progress(progress.done, progress.total)

            try:
                result = await stream.call(method, arguments, heard, common)
            except MemorydError as error:
                if isinstance(error, DaemonError):
                    stream.close()
                raise
            except BaseException:  # cancelled in the middle: the daemon stops the work, and its answer is not the next call's
                stream.close()
                raise
            finally:
                self._put_back(stream)
            return result
        raise AssertionError("unreachable: a deadline that passed raises")

    def _put_back(self, stream: _Stream) -> None:
        if stream.is_usable and not self.closed and len(self._idle) < _IDLE:
            self._idle.append(stream)
        else:
            stream.close()

    async def _connect(self) -> _Stream:
        try:
            found = await trio.open_unix_socket(self._place.socket)
        except OSError as error:
            raise away(self._place, error) from error
        stream = _Stream(self._place, found)
        try:
            check_peer(found.socket, self._place)  # type: ignore[arg-type]  # trio's socket has what is asked of it
            with trio.fail_after(OPENING):
                await stream.greet()
        except trio.TooSlowError:
            stream.close()
            raise DaemonUnavailable(f"the daemon at {self._place.socket} does not answer") from None
        except BaseException:  # half a handshake is of no use to the next call
            stream.close()
            raise
        return stream

    def close(self) -> None:
        self.closed = True
        while self._idle:
            self._idle.pop().close()
