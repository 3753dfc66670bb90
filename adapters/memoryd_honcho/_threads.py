"""Threads: which Honcho session holds the messages of a user's session.

A session that was deleted must never be used again, so each thread has a small session of its own, the *anchor*, whose metadata names
the generation that is in use.  Anchors are written once and at every change of generation, and never deleted.
"""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import attrs

from memoryd_honcho._client import Client
from memoryd_honcho._names import Names

__all__ = ["Thread", "Threads"]

_NS = "memoryd-thread"
_MOST = 4096  # threads that are remembered; the server has them all


@attrs.frozen(slots=True)
class Thread:
    """``generation`` is in use; ``old`` ones are to be deleted still."""

    anchor: str
    user: str
    generation: str = "0"
    old: tuple[str, ...] = ()

    @property
    def session(self) -> str:
        """The session that holds the messages."""
        return self.session_of(self.generation)

    def session_of(self, generation: str) -> str:
        return f"s-{self.anchor.removeprefix('th-')}-{generation}"

    def next_generation(self, event: str) -> str:
        """The one that ``event`` makes: the same until the anchor names it, another where the same event has to erase once more."""
        before, _, count = self.generation.partition("-")
        return event if before != event else f"{event}-{int(count or 1) + 1}"

    def metadata(self) -> dict[str, Any]:
        return {"ns": _NS, "u": self.user, "gen": self.generation, "old": list(self.old), "rev": token_hex(8)}


class Threads:
    """Reads anchors, remembers them, and changes generations."""

    def __init__(self, client: Client, names: Names) -> None:
        self._client = client
        self._names = names
        self._known: dict[str, Thread] = {}

    def forget_known(self) -> None:
        """Another process may have changed generations: read anchors anew."""
        self._known.clear()

    def anchor(self, user: str, session: str | None) -> str:
        """Which session is the anchor of a thread."""
        return self._names.thread(user, session)

    async def find(self, user: str, session: str | None) -> Thread | None:
        """The thread as the server has it, or None where nothing was written to it yet."""
        anchor = self.anchor(user, session)
        metadata = await self._client.session_metadata(anchor)
        return None if metadata is None else _thread(anchor, metadata)

    async def need(self, user: str, session: str | None) -> Thread:
        """The thread to write to: remembered, else read, made where it is not there."""
        anchor = self.anchor(user, session)
        thread = self._known.get(anchor) or await self.find(user, session)
        if thread is None:
            thread = Thread(anchor, self._names.user(user))
            await self.save(thread)
        self._remember(thread)
        return thread

    async def of_user(self, user: str) -> list[Thread]:
        """Every thread of a user, oldest first."""
        found = await self._client.sessions({"metadata": {"ns": _NS, "u": self._names.user(user)}})
        threads = (_thread(anchor, metadata) for anchor, metadata in found)
        return [thread for thread in threads if thread is not None]

    async def save(self, thread: Thread) -> None:
        await self._client.set_session_metadata(thread.anchor, thread.metadata())
        self._remember(thread)

    async def delete_old(self, thread: Thread) -> None:
        """Ask for the end of the generations that are no longer in use."""
        for generation in thread.old:
            await self._client.delete_session(thread.session_of(generation))
        if thread.old:
            await self.save(attrs.evolve(thread, old=()))

    def _remember(self, thread: Thread) -> None:
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[thread.anchor] = thread


def _thread(anchor: str, metadata: dict[str, Any]) -> Thread | None:
    if metadata.get("ns") != _NS:
        return None
    return Thread(anchor, str(metadata.get("u")), str(metadata.get("gen", "0")), tuple(map(str, metadata.get("old", ()))))
