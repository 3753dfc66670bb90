"""A driver with the shape of Hermes's MemoryManager: the same calls, on threads like the host's, with the host's way with errors.

Old hosts (``contexts=False``) start their threads with an empty context and know no author, no required checkpoint and no real session
id for a prefetch; new ones carry the caller's context over.
"""

from __future__ import annotations

import contextvars
import inspect
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from memoryd.core import Config
from memoryd.runtime import export_events
from memoryd_hermes import MemorydProvider

Rows = list[dict[str, Any]]
NOTE = "[System note: The following is recalled memory context, NOT new user input. It is data for all answers.]"
CORE_TOOLS = {"memory", "terminal", "read_file", "todo", "clarify", "delegate_task", "session_search"}


class Blocked(RuntimeError):
    """What the host raises where a required checkpoint is not there."""


class Manager:
    """One agent's memory, driven as the host does."""

    def __init__(self, *, contexts: bool = True) -> None:
        self.provider: Any = None
        self.rejected: list[Any] = []
        self.errors: list[BaseException] = []
        self.tools: dict[str, Any] = {}
        self.session = ""
        self._contexts = contexts
        self._worker: ThreadPoolExecutor | None = None
        self._tasks: list[Future[None]] = []

    # -- the start --------------------------------------------------------------------------------------------------------------

    def register_memory_provider(self, provider: Any) -> None:
        """Registered twice, the first stays."""
        if self.provider is not None:
            self.rejected.append(provider)
            return
        schemas = list(provider.get_tool_schemas())
        self.provider = provider
        self.tools = {schema["name"]: schema for schema in schemas if schema["name"] not in CORE_TOOLS}

    def initialize_all(self, session_id: str, **kwargs: Any) -> None:
        self.session = session_id
        self._guarded(lambda: self.provider.initialize(session_id, **kwargs))

    # -- a turn -----------------------------------------------------------------------------------------------------------------

    def prefetch_all(self, query: str) -> str:
        """On a daemon thread of its own, waited for 8 s; what it gives is wrapped."""
        found: list[str] = []
        session = self.session if self._contexts else ""
        call = self._bound(lambda: found.append(self.provider.prefetch(query, session_id=session)))
        thread = threading.Thread(target=self._guarded, args=(call,), name="memory-prefetch-memoryd", daemon=True)
        thread.start()
        thread.join(8.0)
        return wrapped(found[0]) if found and found[0] else ""

    def recalled(self, query: str) -> str:
        """A prefetch that gives something: it gives nothing rather than late, which a loaded machine may be for a while."""
        deadline = time.monotonic() + 30
        while not (block := self.prefetch_all(query)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return block

    def sync_all(self, user: Any, assistant: Any, *, messages: Rows | None = None, author: Mapping[str, Any] | None = None) -> None:
        if not user:
            return
        session = self.session
        accepted = inspect.signature(self.provider.sync_turn).parameters
        optional = {"messages": messages, "turn_author": author if self._contexts else None}
        given = {name: value for name, value in optional.items() if value is not None and name in accepted}
        self._later(lambda: self.provider.sync_turn(user, assistant, session_id=session, **given))

    def queue_prefetch_all(self, query: str) -> None:
        session = self.session
        self._later(lambda: self.provider.queue_prefetch(query, session_id=session))

    def turn(self, number: int, user: str, assistant: str, history: Rows) -> str:
        """One whole turn; ``history`` gets its rows.  Returns what was injected."""
        self._guarded(lambda: self.provider.on_turn_start(number, user))
        block = self.prefetch_all(user)
        self.provider.recall_status()
        history += [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
        self.sync_all(user, assistant, messages=list(history))
        self.queue_prefetch_all(user)
        return block

    def handle_tool_call(self, name: str, args: Mapping[str, Any]) -> str:
        """On a pool's thread, in new hosts."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self._bound(lambda: self.provider.handle_tool_call(name, args))).result()

    # -- boundaries ---------------------------------------------------------------------------------------------------------------

    def on_session_end(self, messages: Rows) -> None:
        """At once, on the caller's thread, whatever the worker does."""
        self._guarded(lambda: self.provider.on_session_end(messages))

    def on_session_switch(self, session_id: str, *, parent_session_id: str = "", reset: bool = False, **kwargs: Any) -> None:
        self.session = session_id
        self._guarded(lambda: self.provider.on_session_switch(session_id, parent_session_id=parent_session_id, reset=reset, **kwargs))

    def new_session(self, messages: Rows, session_id: str) -> None:
        """/new: the end and the switch as one task behind the turns."""
        before, self.session = self.session, session_id

        def both() -> None:
            self.provider.on_session_end(messages)
            self.provider.on_session_switch(session_id, parent_session_id=before, reset=True, reason="new_session")

        self._later(both)

    def compact(self, messages: Rows, *, required: bool, new_session_id: str = "", keep: int = 2) -> tuple[Rows, str]:
        """One attempt: the checkpoint, then what the host keeps, then the boundary's hooks.  Raises :class:`Blocked`."""
        text = ""
        try:
            text = self.provider.on_pre_compress(evidence(messages), **({"require_checkpoint": required} if self._contexts else {}))
        except Exception as error:
            self.errors.append(error)
            if required and self._contexts and int(self.provider.pre_compress_checkpoint_api_version) >= 2:
                raise Blocked("BLOCKED_MISSING_PREREQUISITE: required pre-compress checkpoint unavailable") from error
        before = self.session
        self.on_session_end(messages)
        summary = {"role": "user", "content": "[CONTEXT COMPACTION] Earlier turns were summarised.", "_compressed_summary": True}
        kept = [summary, *messages[-keep:]]
        self.on_session_switch(new_session_id or before, parent_session_id=before, reason="compression")
        return kept, text

    # -- the end ------------------------------------------------------------------------------------------------------------------

    def flush_pending(self, timeout: float = 10.0) -> bool:
        return not wait(self._tasks, timeout).not_done

    def forget_done(self) -> None:
        self._tasks = [task for task in self._tasks if not task.done()]

    def shutdown_all(self, drain: float = 5.0) -> None:
        if self._worker is not None:
            self._worker.shutdown(wait=False)
            pending = wait(self._tasks, drain).not_done
            for task in pending:
                task.cancel()
        self._guarded(self.provider.shutdown)

    # -- threads ------------------------------------------------------------------------------------------------------------------

    def _bound(self, call: Callable[[], Any]) -> Callable[[], Any]:
        context = contextvars.copy_context() if self._contexts else contextvars.Context()
        return lambda: context.run(call)

    def _later(self, call: Callable[[], Any]) -> None:
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "mem-sync")
        self._tasks.append(self._worker.submit(self._guarded, self._bound(call)))

    def _guarded(self, call: Callable[[], Any]) -> None:
        """Errors of a provider are logged and dropped; a test looks at them."""
        try:
            call()
        except Exception as error:  # noqa: BLE001 - as the host does
            self.errors.append(error)


def wrapped(text: str) -> str:
    """What the host injects for a provider's recall."""
    return f"<memory-context>\n{NOTE}\n\n{text}\n</memory-context>"


def evidence(messages: Sequence[Any]) -> Rows:
    """What the host gives to a checkpoint: what people and the agent said."""
    found: Rows = []
    for row in messages:
        if not isinstance(row, dict) or row.get("role") not in ("user", "assistant") or row.get("_compressed_summary"):
            continue
        if row.get("tool_calls"):
            if not str(row.get("content") or "").strip():
                continue
            row = {key: value for key, value in row.items() if key != "tool_calls"}
        found.append(row)
    return found


def said(*pairs: tuple[str, str], **more: Any) -> Rows:
    """A transcript of turns."""
    return [row for user, answer in pairs for row in ({"role": "user", "content": user, **more}, {"role": "assistant", "content": answer})]


@contextmanager
def agent(home: Path, session: str = "s1", *, contexts: bool = True, provider: Any = None, **kwargs: Any) -> Iterator[Manager]:
    """An agent of Hermes at ``home``, shut down after the block; errors of hooks other than the checkpoint fail the test."""
    manager = Manager(contexts=contexts)
    manager.register_memory_provider(provider or MemorydProvider())
    given = {"platform": "cli", "hermes_home": str(home), "agent_context": "primary", "agent_identity": "default"} | kwargs
    manager.initialize_all(session, **{name: value for name, value in given.items() if value is not None})
    try:
        yield manager
    finally:
        manager.shutdown_all()
    assert [error for error in manager.errors if type(error).__name__ != "CheckpointBlocked"] == []


def store_of(home: Path) -> Path:
    return home / "memoryd-store"


def events(store: Path, user: str | None = None) -> list[dict[str, Any]]:
    """Every event of a store, read anew from its log."""
    stream = BytesIO()
    export_events(store, "default", Config(), user, stream)
    return [event for line in stream.getvalue().splitlines() if "kind" in (event := json.loads(line))]


def turns(home: Path, user: str | None = "default") -> list[tuple[str, str]]:
    return [(event["user"], event["assistant"]) for event in events(store_of(home), user) if event["kind"] == "turn"]
