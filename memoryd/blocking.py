"""Memory for threads: the methods of the runtime, synchronous, over a portal to a loop in a daemon thread.

    from memoryd.blocking import Memory

    memory = Memory()
    with memoryd.scope(user="ada", session="s1"):
        memory.sync_turn("I live in Turin", "Noted.")
        print(memory.recall("where do I live?"))

Every method may be called from any thread and takes the scope of its context.  What each does, returns and raises stands at
:class:`memoryd.Runtime`.

:func:`get_memory_backend` gives the same to programs that name the user in every call.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

from memoryd.core import (
    Accepted,
    BackendInfo,
    CheckpointInfo,
    Config,
    Context,
    Drained,
    Forgotten,
    Hit,
    MemoryVersion,
    Recall,
    Receipt,
    Restored,
    Scope,
    Status,
    Stored,
    Verification,
    check_name,
    scope,
)
from memoryd.core import Memory as MemoryValue
from memoryd.errors import ClosedError
from memoryd.journal import DeadLetter
from memoryd.runtime import Portal, Runtime
from memoryd.settings import resolve_home

__all__ = ["Memory", "MemoryBackend", "get_memory_backend", "reset_backend"]

T = TypeVar("T")
When = datetime | float | str | None


class Memory:
    """An open memory of one profile.  Use it as a context manager, or :meth:`close` it; at exit without a close it flushes.

    ``fork="raise"`` (the default) refuses to be used in a forked child; ``fork="reopen"`` opens a runtime of the child's own at its
    first use there, which is what prefork servers want.
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        profile: str = "default",
        config: Config | Mapping[str, Any] | None = None,
        *,
        fork: Literal["raise", "reopen"] = "raise",
        on_bug: Literal["contain", "raise"] | None = None,
        vfs: str | None = None,
    ) -> None:
        self._arguments = {"home": home, "profile": profile, "config": config, "on_bug": on_bug, "vfs": vfs}
        self._fork = fork
        self._opening: dict[int, threading.Lock] = {}
        self._portal = Portal(self._arguments)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._portal.close()

    def _here(self) -> Portal:
        if self._fork == "reopen" and self._portal.forked:
            # a lock of this process's own: an inherited one may be held by a thread that did not survive the fork
            with self._opening.setdefault(os.getpid(), threading.Lock()):
                if self._portal.forked:
                    self._portal = Portal(self._arguments)
        return self._portal

    @property
    def _runtime(self) -> Runtime:
        return self._here().runtime

    def _run(self, call: Callable[[Runtime], Awaitable[T]]) -> T:
        return self._here().run(call)

    @property
    def config(self) -> Config:
        return self._runtime.config

    @property
    def profile(self) -> str:
        return self._runtime.profile

    @property
    def home(self) -> Path:
        return self._runtime.home

    @property
    def backend(self) -> BackendInfo:
        return self._runtime.backend

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
        return self._runtime.sync_turn(user, assistant, messages=messages, turn_id=turn_id, created_at=created_at)

    def queue_prefetch(self, query: str) -> None:
        self._runtime.queue_prefetch(query)

    def mark_session(self, mark: str, data: Mapping[str, Any] | None = None) -> Accepted:
        return self._runtime.mark_session(mark, data)

    def dead_letters(self) -> list[DeadLetter]:
        return self._runtime.dead_letters()

    # -- over the portal --------------------------------------------------------------------------------------------------------

    def settled(self, accepted: Accepted, timeout: float) -> Accepted:
        return self._run(lambda rt: rt.settled(accepted, timeout))

    def prefetch(self, query: str) -> Context:
        return self._run(lambda rt: rt.prefetch(query))

    def recall(
        self,
        query: str,
        limit: int = 10,
        as_of: When = None,
        session: str | None = None,
        *,
        labels: Mapping[str, str] | None = None,
    ) -> Recall:
        return self._run(lambda rt: rt.recall(query, limit, as_of, session, labels=labels))

    def store(
        self, key: str, value: str, metadata: Mapping[str, Any] | None = None, *, created_at: When = None
    ) -> Stored:
        return self._run(lambda rt: rt.store(key, value, metadata, created_at=created_at))

    def retrieve(self, key: str) -> MemoryValue | None:
        return self._run(lambda rt: rt.retrieve(key))

    def query(self, text: str, limit: int = 10) -> list[MemoryValue]:
        return self._run(lambda rt: rt.query(text, limit))

    def list_keys(self) -> list[str]:
        return self._run(lambda rt: rt.list_keys())

    def list_memories(self, limit: int | None = None, offset: int = 0) -> list[MemoryValue]:
        return self._run(lambda rt: rt.list_memories(limit, offset))

    def history(self, key: str, as_of: datetime | float | str | None = None) -> list[MemoryVersion]:
        return self._run(lambda rt: rt.history(key, as_of))

    def find(self, id: str) -> Hit | None:
        return self._run(lambda rt: rt.find(id))

    def edit(self, id: str, value: str | None = None, *, user: str | None = None, assistant: str | None = None) -> Stored:
        return self._run(lambda rt: rt.edit(id, value, user=user, assistant=assistant))

    def delete(self, key: str) -> Stored:
        return self._run(lambda rt: rt.delete(key))

    def forget(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        session: str | None = None,
        since: When = None,
        until: When = None,
        everything: bool = False,
    ) -> Forgotten:
        return self._run(
            lambda rt: rt.forget(id, key=key, session=session, since=since, until=until, everything=everything)
        )

    def flush(self, timeout: float | None = None) -> None:
        self._run(lambda rt: rt.flush(timeout))

    def drain(self, timeout: float | None = None) -> Drained:
        return self._run(lambda rt: rt.drain(timeout))

    def catch_up(self, timeout: float) -> int:
        return self._run(lambda rt: rt.catch_up(timeout))

    def checkpoint(
        self,
        messages: Sequence[Any] | None,
        *,
        host: str = "python",
        trigger: str = "manual",
        source: bytes | None = None,
    ) -> Receipt:
        return self._run(lambda rt: rt.checkpoint(messages, host=host, trigger=trigger, source=source))

    def checkpoints(self, session: str | None = None, limit: int = 100) -> list[CheckpointInfo]:
        return self._run(lambda rt: rt.checkpoints(session, limit))

    def checkpoint_info(self, id: str) -> CheckpointInfo:
        return self._run(lambda rt: rt.checkpoint_info(id))

    def restore(self, id: str, *, attempt: int | None = None, full: bool = False) -> Restored:
        return self._run(lambda rt: rt.restore(id, attempt=attempt, full=full))

    def verify(self, id: str | None = None, *, on_progress: Callable[[int, int], None] | None = None) -> Verification:
        return self._run(lambda rt: rt.verify(id, on_progress=on_progress))

    def status(self) -> Status:
        return self._run(lambda rt: rt.status())


class MemoryBackend:
    """Keyed memories of any user, over one :class:`Memory`.  Any thread; a forked child has a runtime of its own.

    Labels and ``private`` come from the scope of the caller's context.  What was stored by another process is seen at once.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @property
    def backend_name(self) -> str:
        """The primary backend as people read it: ``local (SQLite)``, ``honcho (cloud)``, ``null (disabled)``."""
        return self._memory.backend.label

    @property
    def is_cloud(self) -> bool:
        return self._memory.backend.is_cloud

    def is_available(self) -> bool:
        """Whether calls are answered; False once it is closed."""
        try:
            return bool(self._memory.backend.name)
        except ClosedError:
            return False

    def store(self, user_id: str, key: str, value: str, metadata: Mapping[str, Any] | None = None) -> bool:
        """True where it is kept; False where nothing is recorded (null backend, private scope)."""
        with _user(user_id):
            return self._memory.store(key, value, metadata).accepted.state != "off"

    def retrieve(self, user_id: str, key: str) -> MemoryValue | None:
        return self._fresh(user_id, lambda memory: memory.retrieve(key))

    def query(self, user_id: str, text: str, limit: int = 10) -> list[MemoryValue]:
        return self._fresh(user_id, lambda memory: memory.query(text, limit))

    def list_keys(self, user_id: str) -> list[str]:
        return self._fresh(user_id, lambda memory: memory.list_keys())

    def list_memories(self, user_id: str) -> list[MemoryValue]:
        return self._fresh(user_id, lambda memory: memory.list_memories())

    def delete(self, user_id: str, key: str) -> bool:
        """True where there is nothing under ``key`` any more; a missing key is so already."""
        with _user(user_id):
            off = self._memory.delete(key).accepted.state == "off"
        return not off or self.retrieve(user_id, key) is None

    def _fresh(self, user_id: str, read: Callable[[Memory], T]) -> T:
        """Read, after what other processes accepted is projected, as far as the deadline allows."""
        with _user(user_id):
            self._memory.catch_up(self._memory.config.deadlines.retrieve)
            return read(self._memory)

    def close(self) -> None:
        self._memory.close()


def _user(user_id: str) -> AbstractContextManager[Scope]:
    return scope(user=check_name("user_id", user_id))


class _Opened:
    """The backends that :func:`get_memory_backend` opened, of this process alone: an inherited lock may be held by a thread that did
    not survive the fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.backends: dict[tuple[Path, str], MemoryBackend] = {}


_opened: dict[int, _Opened] = {}


def get_memory_backend(home: str | os.PathLike[str] | None = None, profile: str | None = None) -> MemoryBackend:
    """The backend of ``profile`` (default ``$MEMORYD_PROFILE``, else ``default``) below ``home``, opened at the first call.

    The same object for the same home and profile, until :func:`reset_backend`; configuration is read when it opens.
    Raises what :func:`memoryd.open_runtime` raises.
    """
    name = profile if profile is not None else os.environ.get("MEMORYD_PROFILE") or "default"
    place = resolve_home(home), name
    opened = _opened.setdefault(os.getpid(), _Opened())
    with opened.lock:
        backend = opened.backends.get(place)
        if backend is None or not backend.is_available():
            backend = opened.backends[place] = MemoryBackend(Memory(*place, fork="reopen"))
        return backend


def reset_backend() -> None:
    """Close every backend that :func:`get_memory_backend` opened in this process; the next call opens anew.  Raises as closing does."""
    opened = _opened.setdefault(os.getpid(), _Opened())
    with opened.lock, ExitStack() as closing:
        while opened.backends:
            closing.callback(opened.backends.popitem()[1].close)
