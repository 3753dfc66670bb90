"""A client for threads that needs the standard library only, so that any program may use it: no trio, attrs or msgspec is imported.

    from memoryd.client.blocking import Client

    with Client() as memory, memory.scope(user="ada", session="s1"):
        memory.sync_turn("I live in Turin", "Noted.")
        print(memory.recall("where do I live?"))

The methods are those of :class:`memoryd.Runtime`; what each does, returns and raises stands there.  Results are plain objects with the
same fields.  ``with memoryd.scope(...)`` counts here too.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

from memoryd.client._attempts import OPENING, Attempts, not_archived
from memoryd.client._line import Held, Line
from memoryd.client._link import Link, Place
from memoryd.client._records import Accepted, make_plain
from memoryd.client._trim import scope_now, turn_arguments
from memoryd.errors import ClosedError, DaemonError, DeadlineExceeded, MemorydError, NotDurable
from memoryd.settings import resolve_home, resolve_socket
from memoryd.wire import Caller

if TYPE_CHECKING:
    from datetime import datetime

    When = datetime | float | str | None

__all__ = ["Client"]

_IDLE_LINKS = 8
_own_scope: ContextVar[Mapping[str, Any]] = ContextVar("memoryd_client_scope", default=MappingProxyType({}))


class _Links:
    """What one process has of a client: connections for calls, and the line of its turns."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._idle: list[Link] = []
        self.line: Line[Accepted] = Line(self.connect, Accepted)
        self.closed = False

    def connect(self, timeout: float) -> Link:
        return Link(self._place, lambda: Caller(make_plain), timeout)

    @contextmanager
    def link(self, timeout: float) -> Iterator[Link]:
        """A connection for one call, kept for the next where it is as good as before."""
        with self._lock:
            if self.closed:
                raise ClosedError("this client is closed: open it again")
            link = self._idle.pop() if self._idle else None
        if link is None:
            link = self.connect(timeout)
        try:
            yield link
        except MemorydError as error:
            if isinstance(error, (DaemonError, DeadlineExceeded)):  # an answer may still come, which is not the next call's
                link.close()
            raise
        except BaseException:  # interrupted in the middle: its answer is not the next call's
            link.close()
            raise
        finally:
            self._put_back(link)

    def _put_back(self, link: Link) -> None:
        with self._lock:
            if link.is_usable and not self.closed and len(self._idle) < _IDLE_LINKS:
                self._idle.append(link)
                return
        link.close()

    def close(self, timeout: float) -> list[Held]:
        left = self.line.close(timeout)
        with self._lock:
            self.closed = True
            idle, self._idle = self._idle, []
        for link in idle:
            link.close()
        return left

    def let_go(self) -> None:
        """In a forked child: the descriptors are the parent's."""
        self.line.let_go()
        for link in self._idle:
            link.close()


class Client:
    """One profile, through the daemon.  Any thread may call; a forked child connects anew, and what was held stays its parent's.

    Raises :class:`~memoryd.errors.DaemonUnavailable` where no daemon answers.
    """

    def __init__(
        self, home: str | os.PathLike[str] | None = None, profile: str = "default", *, socket: str | os.PathLike[str] | None = None
    ) -> None:
        self._place = Place(str(resolve_socket(socket)), str(resolve_home(home)), profile)
        self._links: dict[int, _Links] = {}
        self._welcome = self._here().line.open(OPENING)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Wait for what is held, up to ``deadlines.close``, and end.

        Raises :class:`NotDurable` where the daemon did not come back, or refused what was held: those turns are not kept.
        """
        here = self._here()
        left = here.close(self._deadlines.get("close", 10.0))
        here.line.check_kept(len(left), f"the daemon at {self._place.socket} did not come back")

    def _here(self) -> _Links:
        pid = os.getpid()
        found = self._links.get(pid)
        if found is None:
            for inherited in self._links.values():
                inherited.let_go()
            found = self._links.setdefault(pid, _Links(self._place))
        return found

    @contextmanager
    def scope(
        self,
        *,
        user: str | None = None,
        session: str | None = None,
        agent: str | None = None,
        workspace: str | None = None,
        platform: str | None = None,
        private: bool | None = None,
        profile: str | None = None,
    ) -> Iterator[None]:
        """As :func:`memoryd.scope`, for the calls of any such client in the block."""
        given = {
            "user": user, "session": session, "agent": agent, "workspace": workspace,
            "platform": platform, "private": private, "profile": profile,
        }  # fmt: skip
        token = _own_scope.set({**_own_scope.get(), **{name: value for name, value in given.items() if value is not None}})
        try:
            yield
        finally:
            _own_scope.reset(token)

    @property
    def profile(self) -> str:
        return str(self._welcome["profile"])

    @property
    def home(self) -> Path:
        return Path(self._welcome["home"])

    @property
    def backend(self) -> Any:
        return self._welcome["backend"]

    @property
    def _deadlines(self) -> Mapping[str, float]:
        found: Mapping[str, float] = self._welcome.get("deadlines", {})
        return found

    # -- how a call is made ---------------------------------------------------------------------------------------------------------

    def _call(self, method: str, arguments: Mapping[str, Any], on_progress: Callable[[int, int], None] | None = None) -> Any:
        here = self._here()
        attempts = Attempts(method, arguments, self._deadlines, here.line.last_seq, time.monotonic())
        scope = scope_now(_own_scope.get()) or None

        def heard(progress: Any) -> None:
            attempts.heard(time.monotonic())
            if on_progress is not None:
                on_progress(progress.done, progress.total)

        while True:
            try:
                with here.link(min(OPENING, max(0.0, attempts.until - time.monotonic()))) as link:
                    wants = True if method == "verify" else None
                    return link.call(method, arguments, lambda: attempts.until, heard, scope=scope, progress=wants, **attempts.common())
            except DeadlineExceeded as error:
                raise attempts.late() if time.monotonic() >= attempts.until else error from error
            except (DaemonError, ClosedError) as error:
                if here.closed:
                    raise
                delay = attempts.delay_after(error, time.monotonic())
                if delay is None:
                    raise
                time.sleep(delay)

    def _turn(self, method: str, arguments: Mapping[str, Any]) -> Any:
        return self._here().line.accept(method, arguments, scope_now(_own_scope.get()))

    # -- plain ----------------------------------------------------------------------------------------------------------------

    def sync_turn(
        self,
        user: str,
        assistant: str,
        *,
        messages: Sequence[Any] | None = None,
        turn_id: str | None = None,
        created_at: When = None,
    ) -> Any:
        """*held* with reason ``daemon`` where the daemon did not acknowledge it within 5 ms: it is sent again until it does."""
        return self._turn("sync_turn", turn_arguments(user, assistant, messages, turn_id, created_at))

    def queue_prefetch(self, query: str) -> None:
        self._here().line.tell("queue_prefetch", {"query": query}, scope_now(_own_scope.get()))

    def mark_session(self, mark: str, data: Mapping[str, Any] | None = None) -> Any:
        return self._turn("mark_session", {"mark": mark, "data": data})

    def dead_letters(self) -> list[Any]:
        return self._list("dead_letters", {})

    # -- calls ------------------------------------------------------------------------------------------------------------------

    def settled(self, accepted: Any, timeout: float) -> Any:
        if accepted.state != "held":
            return accepted
        until = time.monotonic() + timeout
        line = self._here().line
        if line.is_held(accepted.event_id) or line.result(accepted.event_id) is not None:
            accepted = line.settle(accepted.event_id, timeout) or accepted
        left = until - time.monotonic()
        if accepted.state != "held" or left <= 0 or line.is_held(accepted.event_id):
            return accepted
        return self._call("settled", {"accepted": accepted, "timeout": left})

    def prefetch(self, query: str) -> Any:
        try:
            return self._call("prefetch", {"query": query})
        except (DaemonError, DeadlineExceeded):  # empty rather than late
            fields = {"query": query, "text": "", "hits": (), "source": "none", "prefetched": False, "complete": False}
            return make_plain("Context", fields)

    def recall(
        self,
        query: str,
        limit: int = 10,
        as_of: When = None,
        session: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
    ) -> Any:
        return self._call("recall", {"query": query, "limit": limit, "as_of": as_of, "session": session, "labels": labels})

    def store(self, key: str, value: str, metadata: Mapping[str, Any] | None = None, *, created_at: When = None) -> Any:
        return self._call("store", {"key": key, "value": value, "metadata": metadata, "created_at": created_at})

    def retrieve(self, key: str) -> Any:
        return self._call("retrieve", {"key": key})

    def query(self, text: str, limit: int = 10) -> list[Any]:
        return self._list("query", {"text": text, "limit": limit})

    def list_keys(self) -> list[str]:
        return self._list("list_keys", {})

    def list_memories(self, limit: int | None = None, offset: int = 0) -> list[Any]:
        return self._list("list_memories", {"limit": limit, "offset": offset})

    def history(self, key: str, as_of: When = None) -> list[Any]:
        return self._list("history", {"key": key, "as_of": as_of})

    def find(self, id: str) -> Any:
        return self._call("find", {"id": id})

    def edit(self, id: str, value: str | None = None, *, user: str | None = None, assistant: str | None = None) -> Any:
        return self._call("edit", {"id": id, "value": value, "user": user, "assistant": assistant})

    def delete(self, key: str) -> Any:
        return self._call("delete", {"key": key})

    def forget(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        session: str | None = None,
        since: When = None,
        until: When = None,
        everything: bool = False,
    ) -> Any:
        arguments = {"id": id, "key": key, "session": session, "since": since, "until": until, "everything": everything}
        return self._call("forget", arguments)

    def flush(self, timeout: float | None = None) -> None:
        seconds = self._deadlines.get("flush", 5.0) if timeout is None else timeout
        if not self._here().line.wait(seconds):
            raise NotDurable(f"{self._here().line.held} turns are held: the daemon is away")
        self._call("flush", {"timeout": timeout})

    def drain(self, timeout: float | None = None) -> Any:
        self._here().line.wait(self._deadlines.get("drain", 10.0) if timeout is None else timeout)
        return self._call("drain", {"timeout": timeout})

    def catch_up(self, timeout: float) -> int:
        return int(self._call("catch_up", {"timeout": timeout}))

    def checkpoint(
        self, messages: Sequence[Any] | None, *, host: str = "python", trigger: str = "manual", source: bytes | None = None
    ) -> Any:
        try:
            return self._call("checkpoint", {"messages": messages, "host": host, "trigger": trigger, "source": source})
        except (DaemonError, DeadlineExceeded) as error:
            raise not_archived(error) from error

    def checkpoints(self, session: str | None = None, limit: int = 100) -> list[Any]:
        return self._list("checkpoints", {"session": session, "limit": limit})

    def checkpoint_info(self, id: str) -> Any:
        return self._call("checkpoint_info", {"id": id})

    def restore(self, id: str, *, attempt: int | None = None, full: bool = False) -> Any:
        return self._call("restore", {"id": id, "attempt": attempt, "full": full})

    def verify(self, id: str | None = None, *, on_progress: Callable[[int, int], None] | None = None) -> Any:
        return self._call("verify", {"id": id}, on_progress)

    def status(self) -> Any:
        """The daemon's, with what is held here counted."""
        found, line = self._call("status", {}), self._here().line
        if line.held:
            found.notes += (line.note,)
            if found.log is not None:
                found.log.held += line.held
        return found

    def _list(self, method: str, arguments: Mapping[str, Any]) -> list[Any]:
        found: list[Any] = self._call(method, arguments)
        return found
