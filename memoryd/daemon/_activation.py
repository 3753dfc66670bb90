"""What a service manager hands over and wants to hear: sockets (``LISTEN_FDS``) and states (``NOTIFY_SOCKET``), without a library."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from contextlib import suppress

from memoryd.errors import ConfigError

__all__ = ["Notifier", "inherited_sockets"]

_FIRST = 3


def inherited_sockets(environ: MutableMapping[str, str]) -> list[socket.socket]:
    """The listening sockets that this process was started with; the variables that name them are removed, so that no child takes them.

    Raises :class:`ConfigError` where one is no listening unix stream socket.
    """
    pid, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if not count.isdecimal() or pid != str(os.getpid()):
        return []
    return [_checked(descriptor) for descriptor in range(_FIRST, _FIRST + int(count))]


def _checked(descriptor: int) -> socket.socket:
    try:
        os.set_inheritable(descriptor, False)
        found = socket.socket(fileno=descriptor)
    except OSError as error:
        raise ConfigError(f"LISTEN_FDS: descriptor {descriptor} is no socket: {error.strerror}") from None
    if not _is_usable(found):
        found.close()
        raise ConfigError(f"LISTEN_FDS: descriptor {descriptor} is no listening unix socket; use ListenStream=%t/memoryd/memoryd.sock")
    found.setblocking(False)
    return found


def _is_usable(found: socket.socket) -> bool:
    """A unix stream socket that listens at a path: the lock beside it is what keeps a second daemon away."""
    if found.family != socket.AF_UNIX or found.type != socket.SOCK_STREAM:
        return False
    name = found.getsockname()
    return isinstance(name, str) and name.startswith("/") and bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


class Notifier:
    """Tells the service manager how we are.  Nothing happens where there is none, and it never waits or fails."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        address = environ.pop("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        pid, period = environ.pop("WATCHDOG_PID", str(os.getpid())), environ.pop("WATCHDOG_USEC", "")
        usable = bool(self._address) and period.isdecimal() and pid == str(os.getpid())
        self.watchdog = int(period) / 2e6 if usable else None
        """Seconds between signs of life, half of what the manager waits for; None where it waits for none."""

    def ready(self, status: str) -> None:
        self._send(f"READY=1\nSTATUS={status}\nMAINPID={os.getpid()}")

    def stopping(self, seconds: float) -> None:
        """We end within ``seconds``; the manager waits that long before it kills."""
        self._send(f"STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC={int((seconds + 5) * 1e6)}")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.connect(self._address)
            sender.send(message.encode())
