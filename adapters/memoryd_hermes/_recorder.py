"""Turns into the log, each once: as the host tells them, and again from its transcript where it did not.

A turn's idempotency key is the digest of what the user said with its number among equal ones, so that a repeat is known to the log
itself, in any process.  What the log refuses waits here, bounded, and is tried before anything later.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from memoryd.blocking import Memory
from memoryd.core import Scope, bind_scope, normalised
from memoryd.errors import DaemonError, DeadlineExceeded, InvalidInput, MemorydError, ScopeError
from memoryd_hermes._ledger import Ledger
from memoryd_hermes._stores import Store
from memoryd_hermes._turns import Entry, SpokenTurn, is_cut, missing_turns, spoken_turns

__all__ = ["Recorder"]

_WAITING_CHARS = 16 << 20
_UNCLAIMED = 256  # a host's worker is never that far behind


@attrs.frozen(slots=True)
class _Waiting:
    """``sent``: the key under which a daemon was told the turn and did not say whether it has it."""

    scope: Scope
    turn: SpokenTurn
    messages: Sequence[Any] | None = attrs.field(default=None, repr=False)
    filled: bool = False
    place: int | None = None
    sent: list[str] = attrs.field(factory=list)


class Recorder:
    """Records the turns of one agent.  ``counts`` of what was done: recorded, filled, repeated, refused, dropped; ``problem`` is why the
    last turn was not recorded, empty once one was."""

    def __init__(self, store: Store) -> None:
        self.counts: Counter[str] = Counter()
        self.problem = ""
        self.told_otherwise: dict[str, int] = {}
        self.doubtful: dict[str, int] = {}
        self._store = store
        self._waiting: deque[_Waiting] = store.waiting

    @property
    def waiting(self) -> int:
        """Turns that the log refused, of any agent here, and that are tried again."""
        return len(self._waiting)

    # -- as they come -----------------------------------------------------------------------------------------------------------

    def turn(self, scope: Scope, turn: SpokenTurn, messages: Sequence[Any] | None) -> None:
        """Record a turn that the host tells.  Never raises for what the log says; a turn that was filled in already is that one."""
        ledger = self._store.ledgers.of(scope.need_session())
        with ledger.lock:
            if self._claimed(ledger, turn):
                self.counts["repeated"] += 1
                return
            self.retry()
            self._put(_Waiting(scope, turn, messages), ledger)

    def _claimed(self, ledger: Ledger, turn: SpokenTurn) -> bool:
        """Whether the turn was filled in from a transcript before its own call came: by the host's id, or by text and answer."""
        told = _entry(ledger, turn)
        for place, filled in enumerate(ledger.unclaimed):
            if (filled.text, filled.answer) == (told.text, told.answer) or not set(filled.uids).isdisjoint(told.uids):
                del ledger.unclaimed[place]
                return True
        return False

    def retry(self) -> None:
        """Try again what waits, in order, until one is refused once more."""
        with self._store.retrying:
            while self._waiting:
                first = self._waiting[0]
                ledger = self._store.ledgers.of(first.scope.need_session())
                if not self._claimed(ledger, first.turn) and not self._accepted(first, ledger):
                    return
                self._waiting.popleft()

    def _put(self, wanted: _Waiting, ledger: Ledger) -> None:
        if not self._waiting and self._accepted(wanted, ledger):
            return
        with self._store.retrying:
            size = sum(len(one.turn.user) + len(one.turn.assistant) for one in (*self._waiting, wanted))
            if size <= _WAITING_CHARS:
                self._waiting.append(attrs.evolve(wanted, messages=None))
        self.counts["refused"] += 1

    def _accepted(self, wanted: _Waiting, ledger: Ledger) -> bool:
        """False where the log refused it and may take it later."""
        try:
            with self._store.memory() as memory, bind_scope(wanted.scope):
                self._append(memory, wanted, ledger)
        except (InvalidInput, ScopeError) as error:  # nothing that time would mend
            self.counts["dropped"] += 1
            self.problem = str(error)
        except MemorydError as error:
            self.problem = str(error)
            return False
        return True

    def _append(self, memory: Memory, wanted: _Waiting, ledger: Ledger) -> None:
        turn = wanted.turn
        text = ledger.digest(normalised(turn.user))
        number = ledger.counts[text]
        while True:
            key = wanted.sent[0] if wanted.sent else f"{text}:{number}"
            try:
                accepted = memory.sync_turn(turn.user, turn.assistant, messages=wanted.messages, turn_id=key, created_at=turn.at)
            except (DaemonError, DeadlineExceeded):
                wanted.sent[:] = [key]
                raise
            if accepted.reason != "duplicate" or wanted.filled or wanted.sent:
                break
            if ledger.filled_elsewhere(_entry(ledger, turn)):
                self.counts["repeated"] += 1
                return
            number += 1  # said once more
        if accepted.state != "off":
            ledger.add(_entry(ledger, turn), wanted.place)
            done = "filled" if wanted.filled else "recorded"
            self.counts["repeated" if accepted.reason == "duplicate" else done] += 1
        self.problem = ""

    # -- from a transcript --------------------------------------------------------------------------------------------------------

    def reconcile(
        self, scope: Scope, messages: Sequence[Any], *, fill: bool, skip: Callable[[SpokenTurn], bool]
    ) -> Mapping[str, int]:
        """Add what ``messages`` have and the record of the session does not; a turn whose answer may still come is left out, and what
        ``skip`` names.

        With ``fill`` False nothing is added: it is counted as doubtful.  Returns what was done where it differs from the last time.
        """
        session = scope.need_session()
        turns = [turn for turn in spoken_turns(messages) if not turn.open and not skip(turn)]
        ledger = self._store.ledgers.of(session)
        self.retry()
        with ledger.lock:
            known = self._store.ledgers.line_of(session)
            inherited = len(known) - len(ledger.entries)
            gaps = missing_turns(known, [_entry(ledger, turn) for turn in turns], cut=bool(inherited) or is_cut(messages))
            filled = 0
            for theirs, ours in gaps.missing if fill else ():
                filled += self._filled(_Waiting(scope, turns[theirs], None, True, max(0, ours - inherited) + filled), ledger)
        doubtful = gaps.doubtful + (0 if fill else len(gaps.missing))
        changed = (self.told_otherwise.get(session, 0), self.doubtful.get(session, 0)) != (gaps.told_otherwise, doubtful)
        self.told_otherwise[session], self.doubtful[session] = gaps.told_otherwise, doubtful
        found = {"filled": filled, "told_otherwise": gaps.told_otherwise, "doubtful": doubtful}
        return found if filled or changed else {}

    def _filled(self, wanted: _Waiting, ledger: Ledger) -> bool:
        if not self._accepted(wanted, ledger):
            self.counts["refused"] += 1  # the transcript has it: the next time tries again
            return False
        ledger.unclaimed.append(_entry(ledger, wanted.turn))
        del ledger.unclaimed[:-_UNCLAIMED]
        return True


def _entry(ledger: Ledger, turn: SpokenTurn) -> Entry:
    return Entry(ledger.digest(normalised(turn.user)), ledger.digest(normalised(turn.assistant)), turn.uids)
