"""Wake-ups: what appended, held or asked reaches the tasks of the loop, from any thread, through one-place channels."""

from __future__ import annotations

import threading

import trio

__all__ = ["Bell", "Bells"]


class Bell:
    """Wakes one task.  ``ring`` may be called from any thread and costs next to nothing while the task has not answered yet.

    The channel carries the wake-up only: what to do is read from the log, so that a dropped wake-up never drops an event.
    """

    __slots__ = ("_loop", "_receive", "_rung", "_send", "_token")

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[None](1)
        self._token = trio.lowlevel.current_trio_token()
        self._loop = threading.get_ident()
        self._rung = False

    def ring(self) -> None:
        if self._rung:
            return
        self._rung = True
        if threading.get_ident() == self._loop:
            self._put()
            return
        try:
            self._token.run_sync_soon(self._put)
        except trio.RunFinishedError:
            return  # the loop has ended: what is in the log is found at the next open

    def _put(self) -> None:
        try:
            self._send.send_nowait(None)
        except (trio.WouldBlock, trio.ClosedResourceError):
            return

    async def wait(self, timeout: float) -> bool:
        """Wait for a ring; False where ``timeout`` seconds pass without one.  Raises :class:`trio.EndOfChannel` once closed."""
        with trio.move_on_after(timeout):
            await self._receive.receive()
            self._rung = False
            return True
        return False

    def close(self) -> None:
        """End the task that waits."""
        self._send.close()


class Bells:
    """The bells of one runtime, by what rings them: every append, a held event, a queued prefetch."""

    def __init__(self) -> None:
        self._appended: list[Bell] = []
        self.held = Bell()
        self.asked = Bell()

    def on_append(self) -> Bell:
        """A new bell that every append rings."""
        bell = Bell()
        self._appended.append(bell)
        return bell

    def appended(self) -> None:
        """Ring the writers and the barrier.  Any thread."""
        for bell in self._appended:
            bell.ring()

    def close(self) -> None:
        for bell in (*self._appended, self.held, self.asked):
            bell.close()
