"""One blocking connection to the daemon, for one thread at a time.  Standard library only."""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from memoryd.client._attempts import too_large
from memoryd.errors import ConnectionLost, DaemonUnavailable, DeadlineExceeded, MemorydError
from memoryd.wire import Answer, Caller, Progress

__all__ = ["Link", "Place", "away", "check_peer"]

_CHUNK = 65_536


class Place(NamedTuple):
    """Where a client connects, and for which profile of which home."""

    socket: str
    home: str | None
    profile: str | None


def away(place: Place, error: OSError) -> DaemonUnavailable:
    """That no daemon could be reached, and why."""
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return DaemonUnavailable(f"no daemon at {place.socket}: start one with 'memoryd serve'")
    return DaemonUnavailable(f"the daemon at {place.socket} cannot be reached: {error.strerror or type(error).__name__}")


def check_peer(sock: socket.socket, place: Place) -> None:
    """Raises :class:`DaemonUnavailable` where another user listens there: no text goes to a stranger."""
    if sys.platform != "linux":
        return
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    if uid not in (os.getuid(), 0):
        raise DaemonUnavailable(f"the daemon at {place.socket} belongs to another user (uid {uid})")


class Link:
    """Connected, and welcome to the profile.  Every method takes the seconds that it may last.

    The constructor raises :class:`DaemonUnavailable`, or what the daemon answers where it cannot open the profile.
    """

    def __init__(self, place: Place, caller: Callable[[], Caller], timeout: float) -> None:
        self.place = place
        self._caller = caller()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        until = time.monotonic() + timeout
        try:
            self._connect(timeout)
            self._send(self._caller.hello(place.home, place.profile), until)
            [welcome] = self._answers(until)
            self.welcome: Mapping[str, Any] = welcome.result()
        except DeadlineExceeded as error:
            self.close()
            raise DaemonUnavailable(f"the daemon at {place.socket} does not answer") from error
        except BaseException:  # half a handshake is of no use to the next call
            self.close()
            raise

    def _connect(self, timeout: float) -> None:
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(self.place.socket)
        except OSError as error:
            raise away(self.place, error) from error
        check_peer(self._socket, self.place)

    @property
    def is_usable(self) -> bool:
        """Whether a call may be sent: connected, welcome, and the daemon is not ending."""
        return self._caller.state == "open" and self._socket.fileno() >= 0

    def call(
        self,
        method: str,
        arguments: Mapping[str, Any],
        until: Callable[[], float],
        on_progress: Callable[[Progress], None] | None = None,
        **common: Any,
    ) -> Any:
        """The result of one call, before ``until()`` of ``time.monotonic``.

        Raises what the method raises, :class:`ConnectionLost`, and :class:`DeadlineExceeded`; an answer that comes later is passed over.
        """
        id = self.start(method, arguments, until(), **common)
        while True:
            for found in self._some(until()):
                if isinstance(found, Progress):
                    if on_progress is not None:
                        on_progress(found)
                elif found.id == id:
                    return found.result()

    def start(self, method: str, arguments: Mapping[str, Any], until: float, **common: Any) -> int:
        """Send a call; its answer comes with this id."""
        id, frame = self._caller.call(method, arguments, **common)
        too_large(method, len(frame), self.welcome.get("limits", {}))
        self._send(frame, until)
        return id

    def notify(self, method: str, arguments: Mapping[str, Any], until: float, **common: Any) -> None:
        """Send what gets no answer."""
        self._send(self._caller.notify(method, arguments, **common), until)

    def answers(self, until: float) -> list[Answer]:
        """At least one answer."""
        return self._answers(until)

    def _answers(self, until: float) -> list[Answer]:
        while True:
            found = [one for one in self._some(until) if isinstance(one, Answer)]
            if found:
                return found

    def _some(self, until: float) -> list[Answer | Progress]:
        try:
            self._socket.settimeout(_left(until))
            return self._caller.receive(self._socket.recv(_CHUNK))
        except OSError as error:
            raise _lost(error) from error

    def _send(self, frame: bytes, until: float) -> None:
        try:
            self._socket.settimeout(_left(until))
            self._socket.sendall(frame)
        except OSError as error:
            self.close()  # half a frame may be on its way
            raise _lost(error) from error

    def close(self) -> None:
        """Also for a descriptor that a fork inherited: nothing is sent."""
        with suppress(OSError):
            self._socket.close()


def _left(until: float) -> float:
    return max(0.0005, until - time.monotonic())


def _lost(error: OSError) -> MemorydError:
    if isinstance(error, TimeoutError):
        return DeadlineExceeded("the daemon did not answer in time")
    return ConnectionLost(f"the connection to the daemon broke: {error.strerror or type(error).__name__}")
