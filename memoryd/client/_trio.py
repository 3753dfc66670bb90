"""The client for trio."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import attrs
import trio

from memoryd.client._attempts import OPENING, Attempts, not_archived
from memoryd.client._line import Line
from memoryd.client._link import Link, Place
from memoryd.client._streams import Streams, new_caller
from memoryd.client._trim import scope_now, turn_arguments
from memoryd.core import (
    Accepted,
    BackendInfo,
    CheckpointInfo,
    Config,
    Context,
    Drained,
    Forgotten,
    Hit,
    Memory,
    MemoryVersion,
    Recall,
    Receipt,
    Restored,
    Status,
    Stored,
    Verification,
)
from memoryd.errors import ClosedError, DaemonError, DeadlineExceeded, ForkedError, NotDurable
from memoryd.settings import load_config, resolve_home, resolve_socket

if TYPE_CHECKING:
    from memoryd.journal import DeadLetter

__all__ = ["Client"]

When = datetime | float | str | None


class Client:
    """One profile, through the daemon: ``async with Client() as rt``.  The methods are those of :class:`memoryd.Runtime`.

    Plain methods may be called from any thread.  Calls go over connections of their own, so that a slow one delays no other; a cancelled
    call ends its connection, and with it the work in the daemon.  Opening raises :class:`~memoryd.errors.DaemonUnavailable` where no
    daemon answers.  ``config`` is what this process knows of the profile's configuration; ``on_away`` is called on a thread while turns
    are held and the daemon is away.
    """

    _opening = OPENING

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        profile: str = "default",
        config: Config | None = None,
        *,
        socket: str | os.PathLike[str] | None = None,
        on_away: Callable[[], None] | None = None,
    ) -> None:
        place = Place(str(resolve_socket(socket)), str(resolve_home(home)), profile)
        self._place = place
        self._config = config
        self._streams = Streams(place)
        self._line: Line[Accepted] = Line(lambda timeout: Link(place, new_caller, timeout), Accepted, on_away=on_away)
        self._welcome: Mapping[str, Any] = {}
        self._pid = os.getpid()

    async def __aenter__(self) -> Client:
        self._welcome = await trio.to_thread.run_sync(self._line.open, self._opening)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Wait for what is held, up to ``deadlines.close``, and end.

        Raises :class:`NotDurable` where the daemon did not come back, or refused what was held: those turns are not kept.
        """
        with trio.CancelScope(shield=True):
            self._streams.close()
            left = await trio.to_thread.run_sync(self._line.close, self._seconds("close", 10.0))
        self._line.check_kept(len(left), f"the daemon at {self._place.socket} did not come back")

    @property
    def config(self) -> Config:
        if self._config is None:
            self._config = load_config(self._place.home, self.profile).config
        return self._config

    @property
    def profile(self) -> str:
        return cast("str", self._place.profile)

    @property
    def home(self) -> Path:
        return Path(cast("str", self._place.home))

    @property
    def backend(self) -> BackendInfo:
        found: BackendInfo = self._welcome["backend"]
        return found

    def _seconds(self, name: str, default: float) -> float:
        deadlines: Mapping[str, float] = self._welcome.get("deadlines", {})
        return deadlines.get(name, default)

    # -- how a call is made ---------------------------------------------------------------------------------------------------------

    async def _call(self, method: str, arguments: Mapping[str, Any], on_progress: Callable[[int, int], None] | None = None) -> Any:
        attempts = Attempts(method, arguments, self._welcome.get("deadlines", {}), self._line.last_seq, trio.current_time())
        scope = self._scope() or None
        wants = True if method == "verify" else None
        while True:
            try:
                return await self._streams.call(
                    method, arguments, attempts, on_progress, scope=scope, progress=wants, **attempts.common()
                )
            except trio.TooSlowError:
                return await self._away(attempts.late(), method, arguments, attempts, on_progress)
            except (DaemonError, ClosedError) as error:
                if self._streams.closed:
                    raise
                delay = attempts.delay_after(error, trio.current_time())
                if delay is None:
                    return await self._away(error, method, arguments, attempts, on_progress)
                await trio.sleep(delay)

    async def _away(
        self,
        error: Exception,
        method: str,
        arguments: Mapping[str, Any],
        attempts: Attempts,
        on_progress: Callable[[int, int], None] | None,
    ) -> Any:
        """The daemon could not be asked, however often."""
        raise error

    def _accept(self, method: str, arguments: Mapping[str, Any]) -> Accepted:
        return self._line.accept(method, arguments, self._scope())

    def _scope(self) -> dict[str, Any]:
        """What goes with every call; a forked child, which shares the parent's connections, gets no further than here."""
        if os.getpid() != self._pid:
            raise ForkedError("this client was opened before a fork: open one in the child")
        return scope_now({})

    # -- plain ----------------------------------------------------------------------------------------------------------------

    def sync_turn(
        self,
        user: str,
        assistant: str,
        *,
        messages: Sequence[Any] | None = None,
        turn_id: str | None = None,
        created_at: When = None,
    ) -> Accepted:
        """*held* with reason ``daemon`` where the daemon did not acknowledge it within 5 ms: it is sent again until it does."""
        return self._accept("sync_turn", turn_arguments(user, assistant, messages, turn_id, created_at))

    def queue_prefetch(self, query: str) -> None:
        self._line.tell("queue_prefetch", {"query": query}, self._scope())

    def mark_session(self, mark: str, data: Mapping[str, Any] | None = None) -> Accepted:
        return self._accept("mark_session", {"mark": mark, "data": data})

    def dead_letters(self) -> list[DeadLetter]:
        """A plain call, which waits for the daemon's answer up to 2 s."""
        found: list[DeadLetter] = self._line.ask("dead_letters", {}, self._scope())
        return found

    # -- calls ------------------------------------------------------------------------------------------------------------------

    async def settled(self, accepted: Accepted, timeout: float) -> Accepted:
        if accepted.state != "held":
            return accepted
        until = trio.current_time() + timeout
        event_id = accepted.event_id
        while self._line.is_held(event_id) and trio.current_time() < until:
            await trio.sleep(0.01)
        accepted = self._line.result(event_id) or accepted
        left = until - trio.current_time()
        if accepted.state != "held" or left <= 0 or self._line.is_held(event_id):
            return accepted
        return cast("Accepted", await self._call("settled", {"accepted": accepted, "timeout": left}))

    async def prefetch(self, query: str) -> Context:
        try:
            return cast("Context", await self._call("prefetch", {"query": query}))
        except (DaemonError, DeadlineExceeded):
            return Context(query, "", complete=False)  # empty rather than late

    async def recall(
        self,
        query: str,
        limit: int = 10,
        as_of: When = None,
        session: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
    ) -> Recall:
        arguments = {"query": query, "limit": limit, "as_of": as_of, "session": session, "labels": labels}
        return cast("Recall", await self._call("recall", arguments))

    async def store(
        self, key: str, value: str, metadata: Mapping[str, Any] | None = None, *, created_at: When = None
    ) -> Stored:
        arguments = {"key": key, "value": value, "metadata": metadata, "created_at": created_at}
        return cast("Stored", await self._call("store", arguments))

    async def retrieve(self, key: str) -> Memory | None:
        return cast("Memory | None", await self._call("retrieve", {"key": key}))

    async def query(self, text: str, limit: int = 10) -> list[Memory]:
        return cast("list[Memory]", await self._call("query", {"text": text, "limit": limit}))

    async def list_keys(self) -> list[str]:
        return cast("list[str]", await self._call("list_keys", {}))

    async def list_memories(self, limit: int | None = None, offset: int = 0) -> list[Memory]:
        return cast("list[Memory]", await self._call("list_memories", {"limit": limit, "offset": offset}))

    async def history(self, key: str, as_of: datetime | float | str | None = None) -> list[MemoryVersion]:
        return cast("list[MemoryVersion]", await self._call("history", {"key": key, "as_of": as_of}))

    async def find(self, id: str) -> Hit | None:
        return cast("Hit | None", await self._call("find", {"id": id}))

    async def edit(self, id: str, value: str | None = None, *, user: str | None = None, assistant: str | None = None) -> Stored:
        arguments = {"id": id, "value": value, "user": user, "assistant": assistant}
        return cast("Stored", await self._call("edit", arguments))

    async def delete(self, key: str) -> Stored:
        return cast("Stored", await self._call("delete", {"key": key}))

    async def forget(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        session: str | None = None,
        since: When = None,
        until: When = None,
        everything: bool = False,
    ) -> Forgotten:
        arguments = {"id": id, "key": key, "session": session, "since": since, "until": until, "everything": everything}
        return cast("Forgotten", await self._call("forget", arguments))

    async def flush(self, timeout: float | None = None) -> None:
        if not await self._sent(self._seconds("flush", 5.0) if timeout is None else timeout):
            raise NotDurable(f"{self._line.held} turns are held: the daemon is away")
        await self._call("flush", {"timeout": timeout})

    async def drain(self, timeout: float | None = None) -> Drained:
        await self._sent(self._seconds("drain", 10.0) if timeout is None else timeout)
        return cast("Drained", await self._call("drain", {"timeout": timeout}))

    async def _sent(self, timeout: float) -> bool:
        """Wait until nothing is held here."""
        with trio.move_on_after(timeout):
            while self._line.held:
                await trio.sleep(0.01)
        return not self._line.held

    async def catch_up(self, timeout: float) -> int:
        return cast("int", await self._call("catch_up", {"timeout": timeout}))

    async def checkpoint(
        self, messages: Sequence[Any] | None, *, host: str = "python", trigger: str = "manual", source: bytes | None = None
    ) -> Receipt:
        arguments = {"messages": messages, "host": host, "trigger": trigger, "source": source}
        try:
            return cast("Receipt", await self._call("checkpoint", arguments))
        except (DaemonError, DeadlineExceeded) as error:
            raise not_archived(error) from error

    async def checkpoints(self, session: str | None = None, limit: int = 100) -> list[CheckpointInfo]:
        return cast("list[CheckpointInfo]", await self._call("checkpoints", {"session": session, "limit": limit}))

    async def checkpoint_info(self, id: str) -> CheckpointInfo:
        return cast("CheckpointInfo", await self._call("checkpoint_info", {"id": id}))

    async def restore(self, id: str, *, attempt: int | None = None, full: bool = False) -> Restored:
        return cast("Restored", await self._call("restore", {"id": id, "attempt": attempt, "full": full}))

    async def verify(self, id: str | None = None, *, on_progress: Callable[[int, int], None] | None = None) -> Verification:
        return cast("Verification", await self._call("verify", {"id": id}, on_progress))

    async def status(self) -> Status:
        """The daemon's, with what is held here counted."""
        found = cast("Status", await self._call("status", {}))
        held = self._line.held
        if not held:
            return found
        log = None if found.log is None else attrs.evolve(found.log, held=found.log.held + held)
        return attrs.evolve(found, log=log, notes=(*found.notes, self._line.note))
