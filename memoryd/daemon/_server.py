"""The server: an inner nursery accepts, an outer one holds the connections and gets a deadline, the pool closes last."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence

import trio
from trio.lowlevel import wait_readable

from memoryd.daemon._activation import Notifier
from memoryd.daemon._claim import Claim
from memoryd.daemon._limits import Limits
from memoryd.daemon._line import Line, Talk
from memoryd.daemon._peer import peer_uid
from memoryd.daemon._pool import Pool
from memoryd.daemon._signals import wait_for_end
from memoryd.errors import MemorydError
from memoryd.log import Log

__all__ = ["Server"]

_LOOK = 0.5  # seconds between looks at the limits and at the socket's place
_BURST = 64
_FULL = 0.1
_LEAVE = 2.0


class Server:
    """Serves ``listeners`` until :meth:`end`.  ``talk`` makes the protocol of a new connection; ``claim`` is the right to the socket."""

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        claim: Claim,
        pool: Pool,
        talk: Callable[[Line], Talk],
        limits: Limits,
        log: Log,
        notifier: Notifier,
    ) -> None:
        self._listeners = list(listeners)
        self._claim = claim
        self._pool = pool
        self._talk = talk
        self._limits = limits
        self._log = log
        self._notifier = notifier
        self._stop = trio.Event()
        self._is_full = False
        self.lines: set[Line] = set()
        self.served = 0
        """Connections so far."""
        self.cut_off = 0
        """Those among them that were cut at a limit."""

    def end(self) -> None:
        """Begin to drain."""
        self._stop.set()

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve.  ``ready`` is called when a client that connects is served; returns when everything is drained and closed."""
        async with trio.open_nursery() as background:
            background.start_soon(self._watch)
            await background.start(wait_for_end, self.end, self._leave)
            async with trio.open_nursery() as profiles:
                await profiles.start(self._pool.run)
                try:
                    async with trio.open_nursery() as self._handlers:
                        await self._accept_until_stopped(ready)
                        self._handlers.cancel_scope.deadline = trio.current_time() + self._limits.drain
                finally:
                    self._pool.end()
            background.cancel_scope.cancel()
        self._log.info("daemon.ended", served=self.served, cut_off=self.cut_off)

    async def _accept_until_stopped(self, ready: Callable[[], None]) -> None:
        async with trio.open_nursery() as accepting:
            for listener in self._listeners:
                accepting.start_soon(self._accept, listener)
            accepting.start_soon(self._keep_place, accepting)
            self._log.info("daemon.ready", socket=str(self._claim.path))
            self._notifier.ready(f"serving {self._claim.path}")
            ready()
            await self._stop.wait()
            accepting.cancel_scope.cancel()
        self._log.info("daemon.drains", connections=len(self.lines))
        self._notifier.stopping(self._limits.drain)
        self._close_listeners()
        for line in self.lines:
            line.finish()

    # -- accepting --------------------------------------------------------------------------------------------------------------

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            await wait_readable(listener)
            while len(self.lines) >= self._limits.connections and not self._cut_longest_idle():
                await trio.sleep(_FULL)
            if not self._accept_some(listener):
                await trio.sleep(_FULL)

    def _accept_some(self, listener: socket.socket) -> bool:
        """Take whom there is; False where the system has no descriptor left for another."""
        for _ in range(min(_BURST, self._limits.connections - len(self.lines))):
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, ConnectionError):
                return True
            except OSError as error:
                if not self._is_full:
                    self._log.warning("daemon.cannot_accept", error=os.strerror(error.errno or 0))
                self._is_full = True
                return False
            self._is_full = False
            self._welcome(connection)
        return True

    def _welcome(self, connection: socket.socket) -> None:
        try:
            uid = peer_uid(connection)
        except OSError:
            uid = -1
        if uid != os.geteuid():
            self._log.warning("daemon.foreign_peer", uid=uid)
            connection.close()
            return
        line = Line(connection, self._talk)
        self.lines.add(line)
        self.served += 1
        self._handlers.start_soon(self._serve, line)

    async def _serve(self, line: Line) -> None:
        try:
            await line.run()
        except Exception as error:  # noqa: BLE001 - the edge of a connection: a bug in one must not end the others
            self._log.error("daemon.connection_crashed", error=type(error).__name__)
        finally:
            self.lines.discard(line)

    # -- limits -----------------------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Look after limits of time, here for all, so that a small call pays for no timer; and give signs of life."""
        told = 0.0
        pause = min(_LOOK, self._limits.stall / 4, self._limits.idle / 4, self._notifier.watchdog or _LOOK)
        while True:
            await trio.sleep(pause)
            now = trio.current_time()
            for line in self.lines:
                if self._is_over(line, now):
                    self.cut_off += 1
                    line.cut()
            if self._notifier.watchdog is not None and now - told >= self._notifier.watchdog / 2:
                told = now
                self._notifier.alive()

    def _is_over(self, line: Line, now: float) -> bool:
        """Whether a limit of time has passed: who does not read, does not finish a frame, or says nothing at all."""
        if line.is_blocked:
            return now - line.moved > self._limits.stall
        if line.talk.is_partial:
            return now - line.heard > self._limits.stall
        return not line.talk.in_flight and now - max(line.heard, line.moved) > self._limits.idle

    def _cut_longest_idle(self) -> bool:
        idle = [line for line in self.lines if not line.talk.in_flight and not line.is_blocked]
        if not idle:
            return False
        longest = min(idle, key=lambda line: line.heard)
        if trio.current_time() - longest.heard < _LOOK:
            return False
        self.cut_off += 1
        longest.cut()
        self.lines.discard(longest)
        return True

    # -- the socket's place -----------------------------------------------------------------------------------------------------

    async def _keep_place(self, accepting: trio.Nursery) -> None:
        """Where somebody removes our socket, make it again; where another daemon has taken the place, give way to it."""
        while True:
            await trio.sleep(_LOOK)
            if self._claim.is_intact():
                continue
            try:
                self._claim.renew()
                listener = self._claim.listen()
            except MemorydError as error:
                self._log.error("daemon.place_lost", error=type(error).__name__)
                self.end()
                return
            self._log.warning("daemon.socket_made_again")
            self._listeners.append(listener)
            accepting.start_soon(self._accept, listener)

    def _close_listeners(self) -> None:
        """Take whoever has connected already.  At a socket of a service manager they wait for the next daemon."""
        ours = self._claim.unlink()
        for listener in self._listeners:
            if ours:
                self._accept_some(listener)
            listener.close()

    def _leave(self) -> None:
        """At a second signal: what is held in memory goes to disk within two seconds, nothing else is waited for."""
        until = time.monotonic() + _LEAVE
        self._claim.unlink()
        for runtime in self._pool.runtimes():
            if time.monotonic() < until:
                runtime.last_flush()
