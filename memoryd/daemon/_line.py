"""One accepted connection: bytes in, bytes out.  It knows no protocol; a :class:`Talk` does.

The socket is used directly.  A stream of trio makes a checkpoint after each send, which a reply to a small call would pay for twice:
here the wait for the next request is the checkpoint.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from typing import Protocol

import trio
from trio.lowlevel import wait_readable, wait_writable

__all__ = ["Line", "Talk"]

_CHUNK = 1 << 14
_HIGH = 1 << 20  # bytes of replies that wait, above which no further request is read
_SWEEP = 64 << 20


class Talk(Protocol):
    """A protocol on a line."""

    @property
    def in_flight(self) -> int:
        """Calls that are not answered yet."""
        ...

    @property
    def is_partial(self) -> bool:
        """True in the middle of a frame."""
        ...

    def receive(self, data: bytes) -> bytes:
        """Take what arrived (``b""``: the end) and give what is to be sent now; slow work goes to the line's nursery."""
        ...

    def closing(self) -> bytes:
        """What is said to a client when the daemon ends, after everything that it had sent was received."""
        ...


class Line:
    """``heard`` and ``moved`` are when bytes last came in and went out, in seconds of trio's clock."""

    nursery: trio.Nursery

    def __init__(self, sock: socket.socket, talk: Callable[[Line], Talk]) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._out = bytearray()
        self._held = False
        self._go = trio.Event()
        self._all = trio.CancelScope()
        self._reading = trio.CancelScope()
        self._ending = False
        self.heard = self.moved = trio.current_time()
        self.talk = talk(self)

    @property
    def is_blocked(self) -> bool:
        """True while the other end does not take what it asked for."""
        return bool(self._out)

    async def run(self) -> None:
        """Until the other end closes, :meth:`finish` or :meth:`cut`; what was begun is answered first, except at a cut."""
        with self._socket, self._all:
            async with trio.open_nursery() as self.nursery:
                with self._reading:
                    await self._read_on()
                if self._ending:
                    self._sweep()

    def finish(self) -> None:
        """Take no more, answer what has arrived, close.  What the other end sent before it was told is not lost."""
        self._ending = True
        if sys.platform.startswith("linux"):  # elsewhere this throws away what has arrived
            self._shutdown(socket.SHUT_RD)
        self._reading.cancel()

    def cut(self) -> None:
        """Close at once, whatever is going on."""
        self._all.cancel()

    def hang_up(self) -> None:
        """Read no more; close when everything is answered."""
        self._reading.cancel()

    def hold(self) -> None:
        """Read nothing until :meth:`release`."""
        self._held = True

    def release(self) -> None:
        self._held = False
        self._go.set()

    def send(self, data: bytes) -> None:
        """Send what the socket takes now; the rest follows as it has room."""
        if not data:
            return
        if not self._out:
            sent = self._try_send(data)
            if sent == len(data) or self._all.cancel_called:
                return
            data = data[sent:]
            self.nursery.start_soon(self._flush)
        self._out += data

    async def _read_on(self) -> None:
        sock, receive, now = self._socket, self.talk.receive, trio.current_time
        while True:
            await wait_readable(sock)
            try:
                data = sock.recv(_CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            self.heard = now()
            if reply := receive(data):
                self.send(reply)
            if not data:
                return
            while self._held or len(self._out) > _HIGH:
                self._go = trio.Event()
                await self._go.wait()

    def _sweep(self) -> None:
        """What had arrived when we were told to finish."""
        left = _SWEEP
        while left > 0:
            try:
                data = self._socket.recv(_CHUNK)
            except OSError:
                break
            if not data:
                break
            left -= len(data)
            self.send(self.talk.receive(data))
        self.send(self.talk.closing())

    async def _flush(self) -> None:
        while self._out:
            await wait_writable(self._socket)
            del self._out[: self._try_send(self._out[:_CHUNK])]
        self._go.set()

    def _try_send(self, data: bytes | bytearray) -> int:
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:  # the other end is gone: nobody waits for an answer
            self.cut()
            return 0
        self.moved = trio.current_time()
        return sent

    def _shutdown(self, how: int) -> None:
        try:
            self._socket.shutdown(how)
        except OSError:
            return
