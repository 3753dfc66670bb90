"""One agent, bound to its home, its people and its session: what the provider's hooks do, in terms of a store and a recorder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoryd.core import Config, Scope, bind_scope
from memoryd.errors import MemorydError, StoreBroken
from memoryd.hosts import Consent, consent, paused_now, read_pauses, was_paused
from memoryd_hermes._checkpoint import checkpoint, line_of
from memoryd_hermes._config import profile_secrets, store_config
from memoryd_hermes._hermes import in_gateway, working_directory
from memoryd_hermes._identity import Identity, fitting_name, identity_of
from memoryd_hermes._mirror import mirror
from memoryd_hermes._owner import own_store
from memoryd_hermes._places import store_home
from memoryd_hermes._recorder import Recorder
from memoryd_hermes._settings import Settings, read_settings
from memoryd_hermes._stores import OpenMemory, open_embedded, store_at
from memoryd_hermes._tools import Call, answer
from memoryd_hermes._turns import SpokenTurn, rows_outside

__all__ = ["Binding", "bind"]

_MARKS = {"compression": "compaction", "branch": "branch", "resume": "resume"}
_GOES_ON = frozenset({"", "compression", "branch"})


def bind(home: Path, session_id: object, given: Mapping[str, Any], open_memory: OpenMemory | None) -> Binding:
    """Read what this agent is bound to, secrets included: in the host's own call, where the profile is in scope.

    Raises :class:`ConfigError` for settings that cannot be read.  Nothing is written yet.
    """
    settings = read_settings(home)
    identity = identity_of(settings, given, str(given.get("cwd") or "") or working_directory())
    session = str(session_id or "") or identity.told.get("chat", "") or "default"
    return Binding(home, settings, identity, fitting_name(session), open_memory or _opener(settings))


def _opener(settings: Settings) -> OpenMemory:
    if settings.daemon == "never":
        return open_embedded
    from memoryd_hermes._relay import open_relayed

    return open_relayed


class Binding:
    """Any thread may call it.  ``identity`` is whose agent it is; in a shared chat another one may speak."""

    def __init__(self, home: Path, settings: Settings, identity: Identity, session: str, open_memory: OpenMemory) -> None:
        self.settings = settings
        self.identity = self._speaker = identity
        self.session = session
        path = Path(os.path.realpath(store_home(home, settings)))
        self.off = settings.private and not path.exists()
        self.store = store_at(path)
        self.recorder = Recorder(self.store)
        self._note = ""
        self._open_memory = open_memory
        self._configure = self._reader(home, path, profile_secrets())
        self._authors: set[str] = set()
        self._started: set[str] = set()
        self._holds = False

    def _reader(self, home: Path, path: Path, secrets: Mapping[str, str]) -> Callable[[], Config]:
        def configure() -> Config:
            if not self.settings.store:
                try:
                    self._note = own_store(home).note
                except OSError as error:
                    raise StoreBroken(f"{path}: {error.strerror}", path=str(path)) from error
            return store_config(path, self.settings, secrets)

        return configure

    @property
    def writes(self) -> bool:
        return not self.settings.private

    def open(self) -> None:
        """Hold the store and open it; raises what opening raises, and stays bound: later calls try again."""
        if self.off:
            return
        self._holds = True
        self.store.hold(self._open_memory, self._configure)
        with self.store.memory():
            pass
        if self.writes:
            self._settle_identity(self.identity.told.get("parent_session_id", ""))

    def _settle_identity(self, parent: str) -> None:
        """A second agent of a session that is not told whose it is (the host makes such to compact) is the first one's."""
        ledger = self.store.ledgers.of(self.session)
        if self.identity.named:
            ledger.belongs_to(self.identity.user)
        elif ledger.user:
            self.identity = self._speaker = self.identity.belonging_to(ledger.user)
        if parent and parent != self.session:
            ledger.came_from(fitting_name(parent))

    # -- scopes -------------------------------------------------------------------------------------------------------------------

    def speaks(self, author_id: object, is_bot: object) -> None:
        """Who the turn that begins now is from; nobody named: whose agent it is."""
        self._speaker = self.identity.of(str(author_id or ""), bool(is_bot))

    def reading(self, session_id: str = "") -> Scope:
        return self._speaker.reading(fitting_name(session_id) or self.session)

    def writing(self) -> Scope:
        return self._private(self._speaker.writing(self.session))

    def _of_context(self, context: str) -> Scope:
        return self._speaker.writing(self.session, context)

    def _archive(self) -> Scope:
        """The scope of the session's checkpoints: whoever speaks, they belong to whose agent it is."""
        return self._private(self.identity.writing(self.session))

    def _private(self, scope: Scope) -> Scope:
        return scope if self.writes else scope.merged({"private": True})

    # -- recording ----------------------------------------------------------------------------------------------------------------

    def consent(self) -> Consent:
        """Whether what is said now may be recorded."""
        if self.settings.private:
            return Consent(False, "private")
        with self.store.memory() as memory:
            return consent(self.identity.told.get("cwd", ""), memory.config, self.store.path)

    def _keeps_out(self) -> str:
        """Why nothing of this session may be archived; empty where it may, and where the store cannot be asked."""
        try:
            return self.consent().why
        except MemorydError:
            return ""

    def record(self, turn: SpokenTurn, session_id: str, rows: Sequence[Any] | None, author_id: object, is_bot: object) -> None:
        """Record a turn of whoever spoke in it, under the session that it was said in."""
        who = self.identity.of(str(author_id or ""), bool(is_bot))
        self._authors.add(who.user)
        if not self.writes or not who.writes_turns or not (turn.user.strip() or turn.assistant.strip()):
            return
        if not self._allowed():
            return
        scope = who.writing(fitting_name(session_id) or self.session)
        self._start(scope)
        self.recorder.turn(scope, turn, rows)

    def _allowed(self) -> bool:
        try:
            allowed = bool(self.consent())
        except MemorydError:  # the store cannot be opened now and the turn waits: a pause is known without it
            allowed = paused_now(self.store.path) is None
        if not allowed:
            self.recorder.counts["not allowed"] += 1
        return allowed

    def delegated(self, turn: SpokenTurn, child_session_id: str) -> None:
        """Record what a subagent did as a session of its own."""
        if not self.writes or self.identity.automation == "off" or not (turn.user or turn.assistant) or not self._allowed():
            return
        scope = self.identity.writing(fitting_name(child_session_id) or f"{self.session[:400]}/delegations", "subagent")
        self._mark(scope, "delegation", {"parent": self.session})
        self.recorder.turn(scope, turn, None)

    def reconcile(self, messages: Sequence[Any] | None) -> None:
        """Fill in what of the session's transcript is not recorded.

        In a gateway an agent that knows no user, and a chat of several people, do not say whose turns they are: none is added.
        """
        if not self.writes or not self.identity.writes_turns or not messages or not self._allowed():
            return
        scope = self.identity.writing(self.session)
        known = self.identity.named or bool(self.store.ledgers.of(self.session).user) or not in_gateway()
        pauses = read_pauses(self.store.path)
        found = self.recorder.reconcile(
            scope,
            messages,
            fill=known and len(self._authors | {self.identity.user}) == 1,
            skip=lambda turn: turn.at is not None and was_paused(pauses, int(turn.at * 1_000_000)),
        )
        if found:
            self._mark(scope, "reconciled", found)

    def switch(self, session: str, parent: str, reason: str, *, reset: bool, rewound: bool) -> None:
        """Go on as another session, or as the same one after a compaction, an undo or a reset."""
        before, self.session = self.session, fitting_name(session) or self.session
        came_from = fitting_name(parent) or before
        if self.off or not self.writes:
            return
        if not reset and reason in _GOES_ON and came_from != self.session:
            self.store.ledgers.of(self.session).came_from(came_from)
        if self.identity.named:
            self.store.ledgers.of(self.session).belongs_to(self.identity.user)
        word = "rewind" if rewound else "reset" if reset else _MARKS.get(reason, "switch")
        self._mark(self.identity.writing(self.session), word, {"parent": came_from, "reason": reason})

    def _start(self, scope: Scope) -> None:
        """Say once, before the first turn, where and with whom the session is."""
        session = scope.need_session()
        if session not in self._started and self._mark(scope, "start", {"host": "hermes", **self.identity.told}):
            self._started.add(session)

    def _mark(self, scope: Scope, mark: str, data: Mapping[str, Any]) -> bool:
        try:
            with self.store.memory() as memory, bind_scope(scope):
                memory.mark_session(mark, data)
        except MemorydError:
            self.recorder.counts["marks refused"] += 1
            return False
        return True

    def mirror(self, action: str, target: str, content: object, metadata: Mapping[str, Any]) -> None:
        """Do to memory what the host's own memory tool did to its file, one at a time.  Raises what storing raises."""
        with self.store.mirroring, self.store.memory() as memory, bind_scope(self.writing()):
            done = mirror(memory, action, target, content, metadata)
        self.recorder.counts[f"mirror {done}"] += 1

    def archived(self, messages: Sequence[Any], trigger: str) -> str:
        """Archive ``messages`` and say so in one line.  Raises :class:`CheckpointBlocked`."""
        if why := self._keeps_out():
            return f"memoryd: nothing-to-archive ({why})"
        pauses = read_pauses(self.store.path)
        rows = rows_outside(messages, lambda at: was_paused(pauses, at)) if pauses else messages
        return line_of(checkpoint(self.store, self._archive(), rows, trigger))

    def tool(self, name: str, given: Mapping[str, Any]) -> str:
        """The answer of a tool, as JSON text.  Raises what opening raises."""
        with self.store.memory() as memory:
            return answer(name, Call(memory, self.reading(), self.writing(), self._archive(), self._of_context, given))

    # -- the end ------------------------------------------------------------------------------------------------------------------

    def status(self, problem: str) -> dict[str, Any]:
        """Counts and reasons, without a word of what was said."""
        recorder = self.recorder
        return {
            "store": str(self.store.path),
            "session": self.session,
            "user": self.identity.user,
            "counts": dict(recorder.counts),
            "waiting": recorder.waiting,
            "told_otherwise": sum(recorder.told_otherwise.values()),
            "doubtful": sum(recorder.doubtful.values()),
            "problem": recorder.problem or problem,
            "notes": [note for note in (self._note, self.store.note) if note],
        }

    def close(self) -> None:
        """Let go of the store, once; what still runs, or comes late, opens it for itself."""
        if self._holds:
            self._holds = False
            self.recorder.retry()
            self.store.let_go()
