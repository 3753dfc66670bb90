"""Wake-ups: bounded channels that carry sequence numbers from any thread to the tasks of the loop."""

from __future__ import annotations

import threading

import trio

__all__ = ["Wakeups"]

_DEPTH = 64


class Wakeups:
    """``wake(seq)`` may be called from any thread.  A full channel drops the wake-up, never the event: the event is in the log."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._thread = threading.get_ident()
        self._senders: list[trio.MemorySendChannel[int]] = []
        self._seq = 0

    def subscribe(self) -> trio.MemoryReceiveChannel[int]:
        """A new channel that every later wake-up reaches."""
        send, receive = trio.open_memory_channel[int](_DEPTH)
        self._senders.append(send)
        return receive

    def wake(self, seq: int) -> None:
        if threading.get_ident() == self._thread:
            self._send(seq)
            return
        self._seq = seq
        try:
            self._token.run_sync_soon(self._send_latest, idempotent=True)
        except trio.RunFinishedError:  # the loop has ended: what is in the log is found at the next open
            return

    def _send_latest(self) -> None:
        self._send(self._seq)

    def _send(self, seq: int) -> None:
        for sender in self._senders:
            try:
                sender.send_nowait(seq)
            except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
                continue

    def close(self) -> None:
        for sender in self._senders:
            sender.close()


async def wait_for_wake(channel: trio.MemoryReceiveChannel[int], timeout: float) -> bool:
    """Wait for a wake-up and take all that are queued; False where ``timeout`` seconds pass without one.

    Raises :class:`trio.EndOfChannel` after :meth:`Wakeups.close`.
    """
    woken = False
    with trio.move_on_after(timeout):
        await channel.receive()
        woken = True
    try:
        while True:
            channel.receive_nowait()
            woken = True
    except trio.WouldBlock:
        return woken
