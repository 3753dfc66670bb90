"""Recall ahead of the next turn: latest wins per session, and a slot answers only the query it was made for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import attrs
import trio

from memoryd.core import Context, Scope, bind_scope
from memoryd.runtime._kernel import Kernel

__all__ = ["Prefetcher"]

_SLOTS = 256
Thread: TypeAlias = tuple[str, str | None]
Lookup: TypeAlias = Callable[[str, float], Awaitable[Context]]


@attrs.define(slots=True, eq=False, repr=False)
class _Slot:
    query: str
    scope: Scope
    ready: trio.Event | None = None
    context: Context | None = None


class Prefetcher:
    """``queue`` may be called from any thread; ``get`` on the loop."""

    def __init__(self, kernel: Kernel, lookup: Lookup) -> None:
        self._kernel = kernel
        self._lookup = lookup
        self._slots: OrderedDict[Thread, _Slot] = OrderedDict()
        self._waiting: OrderedDict[Thread, _Slot] = OrderedDict()
        self._bell = kernel.bells.asked

    def queue(self, query: str, scope: Scope) -> None:
        """Ask for ``query`` in the thread of ``scope``; an earlier question of that thread that is still waiting is dropped."""
        slot = _Slot(query, scope)
        key = (scope.need_user(), scope.session)
        self._waiting[key] = slot
        self._bell.ring()

    async def get(self, query: str, scope: Scope, budget: float) -> Context | None:
        """The slot's answer to exactly ``query``, waiting up to ``budget`` seconds for it; None where there is none."""
        key = (scope.need_user(), scope.session)
        slot = self._waiting.get(key) or self._slots.get(key)
        if slot is None or slot.query != query:
            return None
        if slot.context is None:
            with trio.move_on_after(budget):
                await self._answered(slot)
        if self._slots.get(key) is not slot:
            return None  # dropped meanwhile, because something was forgotten
        del self._slots[key]
        return slot.context

    async def _answered(self, slot: _Slot) -> None:
        if slot.ready is None:
            slot.ready = trio.Event()
        await slot.ready.wait()

    def clear(self) -> None:
        """Drop every answer: something was forgotten."""
        self._slots.clear()

    @property
    def waiting(self) -> int:
        """Questions that nobody has looked up yet."""
        return len(self._waiting)

    async def run(self) -> None:
        """Answer what is queued, one at a time."""
        while True:
            while self._waiting:
                key, slot = self._waiting.popitem(last=False)
                self._keep(key, slot)
                with bind_scope(slot.scope):
                    slot.context = await self._lookup(slot.query, self._kernel.config.deadlines.recall)
                if slot.ready is not None:
                    slot.ready.set()
            try:
                await self._bell.wait(60.0)
            except trio.EndOfChannel:
                return

    def _keep(self, key: Thread, slot: _Slot) -> None:
        self._slots[key] = slot
        self._slots.move_to_end(key)
        while len(self._slots) > _SLOTS:
            self._slots.popitem(last=False)
