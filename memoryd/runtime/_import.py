"""Import: what an export wrote, back into a log.  The whole file is read once before anything of it is kept.

Events keep their ids, times and order; those that are here already are passed over, so that an import that was killed is just run again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import attrs

from memoryd.core import Config, Erased, Event, Forget, Scope, Turn, Value
from memoryd.errors import InvalidInput
from memoryd.journal import ErasePlan, Intake, Journal
from memoryd.runtime._export import FORMAT, VERSION, opened_log
from memoryd.runtime._ingest import turn_key
from memoryd.runtime._kernel import make_gate, now_micros
from memoryd.runtime._portable import Portable, event_of, text_in
from memoryd.store import ProfileStore

__all__ = ["Imported", "import_events"]

Told = Callable[[int, int], None]

MAX_LINE = 256 << 20
_SHOWN = 8  # bad lines that a message names
_BATCH, _BATCH_BYTES = 256, 256 << 10


@attrs.frozen(slots=True, eq=False, repr=False)
class Imported(Value):
    """``events`` in the file, ``added`` of them new here; ``forgets`` of those erase something that is here, at the next open."""

    events: int
    added: int
    forgets: int = 0


@attrs.frozen(slots=True)
class _Line:
    """A line that holds an event.  ``size`` and ``end`` in bytes."""

    found: Portable
    size: int
    end: int


def import_events(
    home: Path, profile: str, config: Config, source: IO[bytes], *, user: str | None = None, all_users: bool = False,
    on_progress: Told = lambda done, total: None,
) -> Imported:  # fmt: skip
    """Take in what :func:`export_events` wrote.  ``source`` is a file open for reading that can be read twice.

    ``user`` must be the one that the file is about, where it is given; a file of all users needs ``all_users``.  Blocking.
    Raises :class:`InvalidInput` naming the lines that are wrong, before anything is written.
    """
    total = 2 * source.seek(0, 2)
    _check(source, user, all_users, lambda done: on_progress(done, total))
    with opened_log(home, profile, config) as (store, journal), closing(Intake(journal)) as intake:
        taking = _Taking(store, config, journal, intake)
        source.seek(0)
        for line in _events(source, _nothing_wrong):
            taking.take(line)
            on_progress(total // 2 + line.end, total)
        done = taking.finish()
        journal.barrier()
        return done


# -- reading -----------------------------------------------------------------------------------------------------------------


def _check(source: IO[bytes], user: str | None, all_users: bool, told: Callable[[int], None]) -> None:
    """Read the whole file; raise where a line of it is wrong, or it is about somebody else."""
    wrong: list[tuple[int, str]] = []
    source.seek(0)
    _check_user(_head(source), user, all_users)
    source.seek(0)
    for line in _events(source, lambda number, problem: wrong.append((number, problem))):
        told(line.end)
    if wrong:
        (number, problem), *others = wrong
        more = ", ".join(str(number) for number, _ in others[:_SHOWN]) + (", ..." if len(others) > _SHOWN else "")
        raise InvalidInput(f"line {number}", problem + (f"; also wrong: {more}" if others else "") + "; nothing was imported")


def _head(source: IO[bytes]) -> dict[str, Any]:
    try:
        head = _parsed(source.readline(MAX_LINE))
    except InvalidInput:
        head = None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise InvalidInput("line 1", "is not the head of an export of memoryd; nothing was imported")
    if head.get("version") != VERSION:
        raise InvalidInput("line 1", f"is of another version than {VERSION}, which this memoryd reads; nothing was imported")
    return head


def _check_user(head: dict[str, Any], user: str | None, all_users: bool) -> None:
    if "user" not in head:
        if not all_users:
            raise InvalidInput("file", "it is about all users: say --all-users to take it in; nothing was imported")
        return
    whose = text_in("user", head["user"])
    if user is not None and user != whose:
        raise InvalidInput("file", f"it is about user {whose[:80]!r}, not {user[:80]!r}; nothing was imported")


def _events(source: IO[bytes], wrong: Callable[[int, str], None]) -> Iterator[_Line]:
    """The events of an export, in order.  ``wrong(line number, problem)`` is told of what is none."""
    head = _head(source)
    whose = text_in("user", head["user"]) if "user" in head else None
    number, ended = 1, False
    while raw := source.readline(MAX_LINE + 1):
        number += 1
        try:
            row = _parsed(raw)
            if ended:
                raise InvalidInput("line", "something stands after the end")
            if isinstance(row, dict) and row.keys() == {"end"}:
                ended = True
                _check_end(row["end"], number - 2)
            else:
                yield _Line(_checked(row, whose), len(raw), source.tell())
        except InvalidInput as error:
            wrong(number, error.problem if error.field == "line" else str(error))
    if not ended:
        wrong(number + 1, "is missing: the file is cut, an export ends with how many events it has")


def _check_end(given: object, count: int) -> None:
    if given != count:
        raise InvalidInput("end", f"expected {count}, the number of events before it")


def _parsed(raw: bytes) -> Any:
    if len(raw) > MAX_LINE:
        raise InvalidInput("line", f"is longer than {MAX_LINE >> 20} MiB")
    try:
        return json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidInput("line", f"is not UTF-8 text (byte {error.start})") from None
    except (ValueError, RecursionError):
        raise InvalidInput("line", "is not JSON") from None


def _checked(row: object, whose: str | None) -> Portable:
    """An event that the log can take, of the user whom the file is about."""
    found = event_of(row)
    scope = _scope_of(found.event)
    if not isinstance(found.event, Erased) and (scope.user is None or whose not in (None, scope.user)):
        raise InvalidInput("scope", "names no user, or another than the head of the file")
    if isinstance(found.event, Turn) and scope.session is None:
        raise InvalidInput("scope", "a turn has a session")
    return found


def _scope_of(event: Event) -> Scope:
    """The scope of ``event``; an empty one for what says no more whose it was."""
    return Scope() if isinstance(event, Erased) else event.scope


def _nothing_wrong(number: int, problem: str) -> None:
    raise InvalidInput(f"line {number}", f"{problem}; the file has changed since it was checked")


# -- taking in ---------------------------------------------------------------------------------------------------------------


class _Taking:
    """Gathers events into short transactions."""

    def __init__(self, store: ProfileStore, config: Config, journal: Journal, intake: Intake) -> None:
        self._store = store
        self._config = config
        self._journal = journal
        self._intake = intake
        self._rows: list[tuple[Event, bytes | None]] = []
        self._size = 0
        self._events = self._added = self._forgets = 0

    def take(self, line: _Line) -> None:
        event = line.found.event
        self._events += 1
        if isinstance(event, Forget):
            self._forget(event, line.found.targets)
            return
        has_key = isinstance(event, Turn) and event.turn_id is not None
        self._rows.append((event, self._key(event) if has_key else None))
        self._size += line.size
        if len(self._rows) >= _BATCH or self._size >= _BATCH_BYTES:
            self._flush()

    def finish(self) -> Imported:
        self._flush()
        return Imported(self._events, self._added, self._forgets)

    def _key(self, event: Event) -> bytes | None:
        assert isinstance(event, Turn) and event.turn_id is not None
        return turn_key(self._store.key, event.scope, event.turn_id)

    def _flush(self) -> None:
        if self._rows:
            self._added += self._intake.add(self._rows)
            self._rows, self._size = [], 0
            self._journal.trim_wal()

    def _forget(self, event: Forget, targets: tuple[bytes, ...]) -> None:
        """A forget erases here too what it erased there; where all is erased already it is only a mark."""
        self._flush()
        found = [entry for seq in self._intake.seqs_of(targets) for entry in self._journal.read(seq - 1, 1)]
        # an id that belongs to somebody else here is none of this user's business
        meant = [entry for entry in found if isinstance(entry.event, Erased) or entry.event.scope.user == event.scope.user]
        live = [entry.event for entry in meant if not isinstance(entry.event, Erased)]
        seqs = tuple(entry.seq for entry in meant)
        here = attrs.evolve(event, targets=seqs, sessions=() if self._others_in(event, seqs) else event.sessions)
        if not live:
            self._added += self._intake.add([(here, None)])
        elif self._intake.forget(here, self._plan(here, live)):
            self._added += 1
            self._forgets += 1

    def _others_in(self, event: Forget, seqs: tuple[int, ...]) -> bool:
        """Whether a session that was forgotten whole there has something of its own here."""
        if not event.sessions:
            return False
        at, gone = 0, set(seqs)
        while entries := self._journal.read(at, 2048, 4 << 20):
            for entry in entries:
                scope = _scope_of(entry.event)
                if scope.user == event.scope.user and scope.session in event.sessions and entry.seq not in gone:
                    return True
            at = entries[-1].seq
        return False

    def _plan(self, event: Forget, live: Sequence[Event]) -> ErasePlan:
        """What the archive has to erase for those turns."""
        gate = make_gate(self._store, self._config)
        try:
            turns = tuple(
                (turn.scope.session or "", gate.shelf.identities_of_turn(turn.user, turn.assistant))
                for turn in live
                if isinstance(turn, Turn)
            )
        finally:
            gate.close()
        return ErasePlan(event.scope.user or "", turns, event.sessions, until=now_micros())
