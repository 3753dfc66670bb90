"""Turns from a transcript: each user text with what answered it, as soon as it is complete, once.

A turn stays open until the next user text, a compaction, or an event that says that the answer is done.  What an answer gains after that
becomes a turn without a user text.  Every turn has an id made of its first record, so that the log passes over what it has.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import attrs

from memoryd.core import Value, normalised
from memoryd.hosts._dialect import Dialect, Row
from memoryd.hosts._state import Place
from memoryd.hosts._transcript import Line, read_lines

__all__ = ["Said", "Taker", "take_turns", "turns_in"]


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Said(Value):
    """A turn to record.  ``agent`` names a subagent."""

    id: str
    user: str = attrs.field(repr=False)
    assistant: str = attrs.field(repr=False)
    at: int | None = None
    agent: str = ""


@attrs.define(slots=True, eq=False, repr=False)
class _Open:
    """The turn that is not complete yet.  ``answers`` are texts of records; ``taken`` parts (the user's text is the first) were recorded
    before."""

    offset: int
    id: str
    user: str
    at: int | None
    answers: list[str] = attrs.field(factory=list)
    taken: int = 0
    late: str = ""

    @property
    def fresh(self) -> list[str]:
        return self.answers[max(0, self.taken - 1) :]


Record = Callable[[Said], bool]
"""Records a turn; False where that is not possible now, and reading stops there."""


class Taker:
    """Takes the rows of one transcript in order.  ``place`` is where the next reading begins; ``cut`` is where what was said before the
    last compaction that was passed ends, 0 where none was.  Answers of a time that is ``kept_out``
    and records at an offset that is ``hidden`` are passed over."""

    def __init__(
        self, dialect: Dialect, record: Record, digest: Callable[[str], str], place: Place, agent: str = "",
        kept_out: Callable[[int], bool] = lambda at: False, hidden: Callable[[int], bool] = lambda offset: False,
    ) -> None:  # fmt: skip
        self.place = place
        self.cut = 0
        self._said_to = 0
        self._dialect = dialect
        self._record = record
        self._digest = digest
        self._begun = place
        self._agent = agent
        self._kept_out = kept_out
        self._hidden = hidden
        self._open: _Open | None = None
        self._end = place.offset
        self._heard: set[int] = set()  # what any answer read so far says, and of the last message all parts
        self._group, self._message = "", ""

    def take(self, lines: Iterable[Line]) -> bool:
        """False where a turn could not be recorded: :attr:`place` is before it then."""
        for line in lines:
            row = self._dialect.row(line.record) if line.record is not None and not self._hidden(line.start) else None
            if row is not None and not self._row(row, line.start):
                return False
            self._end = line.end
            if row is not None:
                self._note(row, line.end)
        self._move()
        return True

    def _note(self, row: Row, end: int) -> None:
        if row.kind == "boundary":
            self.cut = self._said_to
        elif row.kind in ("user", "assistant"):
            self._said_to = end

    def settle(self, said: str) -> bool:
        """The answer is done, and ``said`` was the last message of it, which the file may not have yet."""
        turn = self._open
        if turn is None:
            return True
        known, last = _squeezed("".join(turn.answers)), _squeezed(said)
        is_late = bool(last) and not known.endswith(last) and hash(last) not in self._heard
        if is_late and turn.taken and not turn.fresh:
            is_late = False  # nothing new in the file: this says again, or belongs to a turn that the file does not have yet
        if not self._emit(said if is_late else ""):
            return False
        turn.taken, turn.late = 1 + len(turn.answers), self._digest(last) if is_late else turn.late
        self._move()
        return True

    # -- rows ---------------------------------------------------------------------------------------------------------------

    def _row(self, row: Row, start: int) -> bool:
        match row.kind:
            case "user":
                return self._begin(row, start, "" if self._agent else row.text)  # a subagent's task is no user's word
            case "assistant":
                return self._answer(row, start)
            case "sidechain":
                return self._aside(row, start)
            case "boundary":
                done = self._emit("")
                self._open = None if done else self._open
                return done
            case _:
                return True

    def _begin(self, row: Row, start: int, user: str) -> bool:
        if not self._emit(""):
            return False
        self._open = _Open(start, row.id, user, row.at)
        if start == self._begun.offset and row.id == self._begun.id:
            self._open.taken, self._open.late = self._begun.taken, self._begun.late
        return True

    def _answer(self, row: Row, start: int) -> bool:
        if not row.text.strip():
            return True
        if self._open is None and not self._begin(row, start, ""):
            return False
        assert self._open is not None
        is_out = row.at is not None and self._kept_out(row.at)
        self._open.answers.append("" if is_out else row.text)  # it counts as a part, so that no other is taken twice
        self._message = _squeezed(row.text) if not row.group or row.group != self._group else self._message + _squeezed(row.text)
        self._group = row.group
        self._heard |= {hash(self._message), hash(_squeezed(row.text))}
        return True

    def _aside(self, row: Row, start: int) -> bool:
        """What a subagent says is nobody's answer, and what it is told is no user's word."""
        if self._agent and row.role == "assistant":
            return self._answer(row, start)
        if self._agent or row.role != "assistant" or not row.text.strip():
            return True
        return self._record(Said(id=row.id, user="", assistant=row.text, at=row.at, agent=row.agent or "subagent"))

    def _emit(self, more: str) -> bool:
        """Record what of the open turn is not recorded yet."""
        turn = self._open
        if turn is None:
            return True
        self._pass_late(turn)
        fresh = [text for text in (*turn.fresh, more) if text]
        if turn.taken and not fresh:
            return True
        first = turn.taken == 0
        said = Said(
            id=turn.id if first else f"{turn.id}+{turn.taken}", user=turn.user if first else "", assistant="\n\n".join(fresh), at=turn.at,
            agent=self._agent,
        )  # fmt: skip
        if not (normalised(said.user) or normalised(said.assistant)):
            return True
        done = self._record(said)
        if not done:
            self.place = attrs.evolve(self.place, offset=turn.offset, id=turn.id, taken=turn.taken, late=turn.late)
        return done

    def _pass_late(self, turn: _Open) -> None:
        """The file has got the message that was recorded before it was there."""
        if not turn.late:
            return
        fresh = turn.fresh
        for count in range(1, len(fresh) + 1):
            if self._digest(_squeezed("".join(fresh[:count]))) == turn.late:
                turn.taken, turn.late = turn.taken + count, ""
                return

    def _move(self) -> None:
        turn = self._open
        if turn is None:
            self.place = attrs.evolve(self.place, offset=self._end, id="", taken=0, late="")
        else:
            self.place = attrs.evolve(self.place, offset=turn.offset, id=turn.id, taken=turn.taken, late=turn.late)


def take_turns(
    dialect: Dialect, path: str, place: Place, record: Record, digest: Callable[[str], str], *, settled: bool, said: str = "",
    agent: str = "", kept_out: Callable[[int], bool] = lambda at: False, hidden: Callable[[int], bool] = lambda offset: False,
) -> tuple[Place, int]:  # fmt: skip
    """Record what ``path`` has beyond ``place``; ``settled`` where the last answer is done.  Returns where to go on, and :attr:`Taker.cut`.

    Raises :class:`~memoryd.errors.InvalidInput` where the file cannot be read.
    """
    taker = Taker(dialect, record, digest, _valid(place, path), agent, kept_out, hidden)
    if taker.take(read_lines(path, taker.place.offset)) and settled:
        taker.settle(said)
    return taker.place, taker.cut


Where = TypeVar("Where")


def turns_in(dialect: Dialect, path: str, where: Callable[[Mapping[str, Any]], Where], agent: str = "") -> Iterator[tuple[Said, Where]]:
    """Every turn of a whole transcript, and what ``where`` says of the record that it begins with.

    Raises :class:`~memoryd.errors.InvalidInput` where the file cannot be read.
    """
    found: list[Said] = []
    places: dict[str, Where] = {}

    def keep(said: Said) -> bool:
        found.append(said)
        return True

    taker = Taker(dialect, keep, lambda text: "", Place(path=path), agent)
    for line in read_lines(path):
        row = dialect.row(line.record) if line.record is not None else None
        if row is not None and row.kind in ("user", "assistant", "sidechain") and line.record is not None:
            places[row.id] = where(line.record)
        taker.take([line])
        if found:
            yield from ((said, places[said.id]) for said in found)
            found.clear()
            places = {id: place for id, place in places.items() if id == taker.place.id}  # the turn that is open now
    taker.settle("")
    yield from ((said, places[said.id]) for said in found)


def _valid(place: Place, path: str) -> Place:
    """``place`` where it is one in this very file, else the file's beginning."""
    inode, size = 0, 0
    with suppress(OSError):
        found = os.stat(path)
        inode, size = found.st_ino, found.st_size
    if (place.path, place.inode) == (path, inode) and place.offset <= size:
        return place
    return Place(path=path, inode=inode)


def _squeezed(text: str) -> str:
    return "".join(text.split())
