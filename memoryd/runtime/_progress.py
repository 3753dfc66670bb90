"""How far a backend is, as something that tasks can wait for."""

from __future__ import annotations

import trio

__all__ = ["Progress"]


class Progress:
    """The highest log seq that a backend has applied.  Used from the loop thread only."""

    def __init__(self) -> None:
        self.seq = 0
        self.blocked = False
        self.placed = trio.Event()  # how far the backend was before is known
        self._moved = trio.Event()
        self._urgent = trio.Event()

    def advance(self, seq: int) -> None:
        """The backend has everything up to ``seq`` now (a lower value, after a rebuild, is taken too)."""
        self.seq = seq
        self._tell()

    def block(self, blocked: bool = True) -> None:
        """The backend is damaged: it will not get further by waiting, so whoever waits is told at once."""
        self.blocked = blocked
        self._tell()

    def _tell(self) -> None:
        self.placed.set()
        moved, self._moved = self._moved, trio.Event()
        moved.set()

    async def reach(self, seq: int, timeout: float) -> bool:
        """Wait until everything up to ``seq`` is applied; False where ``timeout`` seconds pass first, or waiting is of no use."""
        if self.seq >= seq:
            return True
        self._urgent.set()
        with trio.move_on_after(timeout):
            while self.seq < seq and not self.blocked:
                await self._moved.wait()
        return self.seq >= seq

    async def gather(self, seconds: float) -> bool:
        """Let more events arrive before the next batch; True where somebody waits for this one, at once."""
        wanted = self._urgent.is_set()
        if not wanted:
            with trio.move_on_after(seconds):
                await self._urgent.wait()
                wanted = True
        self._urgent = trio.Event()
        return wanted
