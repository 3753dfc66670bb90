"""The open stores of this process: one a place, shared by all agents that use it, open while one of them does."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from memoryd.blocking import Memory
from memoryd.core import Config
from memoryd.errors import BackendError, ConfigError, DaemonError, DeadlineExceeded, MemorydError
from memoryd_hermes._config import CLOSE_SECONDS, without_remotes
from memoryd_hermes._ledger import Ledgers

__all__ = ["Configure", "OpenMemory", "Store", "open_embedded", "store_at"]

OpenMemory: TypeAlias = Callable[[Path, Config], Memory]
Configure: TypeAlias = Callable[[], Config]


def open_embedded(path: Path, config: Config) -> Memory:
    """A memory in this process.  What speaks to a daemon instead has the same methods and is given in its place."""
    return Memory(path, "default", config, fork="reopen")


class Store:
    """One memoryd home.  Agents hold it; calls use it; the last one out closes it, a call that comes later opens it again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ledgers = Ledgers(path / "hermes")
        self.mirroring = threading.Lock()
        self.retrying = threading.Lock()
        self.waiting: deque[Any] = deque()  # turns that the log refused: they outlast the agent that they are from
        self.note = ""
        self._lock = threading.Lock()
        self._holders = self._users = 0
        self._memory: Memory | None = None
        self._open: Callable[[], Memory] | None = None

    def hold(self, open_memory: OpenMemory, configure: Configure) -> None:
        """Count one more agent; the first one says how to open."""
        with self._lock:
            if self._holders == 0 and self._memory is None:
                self._open = lambda: self._opened(open_memory, configure())
            self._holders += 1

    def let_go(self) -> None:
        """Count one agent less.  Ends within 2 s; what is not closed by then goes on in the background and at exit."""
        with self._lock:
            self._holders -= 1
            unused = self._unused()
        _close(unused)

    @contextmanager
    def memory(self, timeout: float = -1) -> Iterator[Memory]:
        """The open memory, for one call.  Raises what opening raises, and :class:`DeadlineExceeded` where that lasts over ``timeout``."""
        memory = self._take(timeout)
        try:
            yield memory
        except DaemonError:
            self._lost(memory)
            raise
        finally:
            with self._lock:
                self._users -= 1
                unused = self._unused()
            _close(unused)

    def _take(self, timeout: float) -> Memory:
        if not self._lock.acquire(timeout=timeout):
            raise DeadlineExceeded("the store is being opened by another call")
        try:
            if self._memory is None:
                assert self._open is not None, "it is held first"
                self._memory = self._open()
            self._users += 1
            return self._memory
        finally:
            self._lock.release()

    def _lost(self, memory: Memory) -> None:
        """The daemon is away: the next call opens anew, which may be in this process."""
        with self._lock:
            if self._memory is not memory:
                return
            self._memory = None
        threading.Thread(target=_closed, args=(memory,), name="memoryd:close", daemon=True).start()

    def _unused(self) -> Memory | None:
        """The memory to close now, where nobody needs it any more.  Under the lock."""
        if self._holders > 0 or self._users > 0:
            return None
        memory, self._memory = self._memory, None
        return memory

    def _opened(self, open_memory: OpenMemory, config: Config) -> Memory:
        self.note = ""
        try:
            return open_memory(self.path, config)
        except (ConfigError, BackendError) as error:
            if config.backend == "local" and not config.mirrors:
                raise
            memory = open_memory(self.path, without_remotes(config))
            self.note = f"local memory alone is used: {error}"
            return memory


def _close(memory: Memory | None) -> None:
    if memory is None:
        return
    closing = threading.Thread(target=_closed, args=(memory,), name="memoryd:close", daemon=True)
    closing.start()
    closing.join(CLOSE_SECONDS + 0.2)


def _closed(memory: Memory) -> None:
    with suppress(MemorydError):  # what was journaled is in the log; the next open says what is wrong with it
        memory.close()


_stores: dict[tuple[int, Path], Store] = {}
_guard = threading.Lock()


def store_at(path: Path) -> Store:
    """The store at ``path`` (a real path), the same for every agent of this process."""
    with _guard:
        return _stores.setdefault((os.getpid(), path), Store(path))
