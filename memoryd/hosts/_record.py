"""From an event of a host to turns in the log, by way of the host's transcript.  Blocking: runs on a thread of its own."""

from __future__ import annotations

import os
import time
from contextlib import suppress

import attrs

from memoryd.core import scope
from memoryd.errors import InvalidInput, JournalUnavailable, StoreError
from memoryd.hosts._call import Call, size_of, why_unrecorded_now
from memoryd.hosts._consent import read_pauses, was_paused
from memoryd.hosts._dialect import Heard
from memoryd.hosts._hide import hidden_in, name_of, shown_again
from memoryd.hosts._project import look_at_git, project_of
from memoryd.hosts._state import Known, States
from memoryd.hosts._turns import Said, take_turns
from memoryd.runtime import Runtime
from memoryd.store import open_profile

__all__ = ["NotRecorded", "note_session", "record_others", "record_turns"]

PATIENCE_S = 5.0
LONGEST_S = 30.0
REST_S = 600.0


class NotRecorded(Exception):
    """The log could not take everything now; what is left is read again from where it stopped."""


def record_turns(runtime: Runtime, call: Call, *, settled: bool) -> bool:
    """Record what the transcript has that was not recorded yet; ``settled`` where the last answer is done.

    True where it tells of a compaction that cut what no checkpoint has: the host did not ask the gate.
    Raises :class:`NotRecorded`, :class:`~memoryd.errors.StoreError`, and where the file cannot be read
    :class:`~memoryd.errors.InvalidInput`.
    """
    heard = call.heard
    if not heard.transcript or not heard.session:
        return False
    states, name = States(open_profile(runtime.home, runtime.profile), call.host), name_of(call)
    recording = _Recording(runtime, call)
    end = size_of(heard.transcript)
    with states.taking(name, PATIENCE_S):
        place, cut = take_turns(
            call.dialect, heard.transcript, states.place(name), recording.record, states.digest, settled=settled, said=heard.said,
            agent=heard.agent, kept_out=recording.was_paused, hidden=shown_again(states, call).covers,
        )  # fmt: skip
        states.put(name, place)
    if recording.problem:
        raise NotRecorded(recording.problem)
    states.put(name, attrs.evolve(_known(call), end=end))
    return cut > states.saved(heard.session).size


def note_session(runtime: Runtime, call: Call) -> None:
    """Remember that there is this session, so that :func:`record_others` finds what it says, whether or not its end is told."""
    if call.heard.transcript and call.heard.session:
        states, name = States(open_profile(runtime.home, runtime.profile), call.host), name_of(call)
        shown_again(states, call)
        if not states.known(name).transcript:
            states.put(name, _known(call))


def record_others(runtime: Runtime, call: Call) -> None:
    """Record what other sessions of the host have said since they were last read: their last events may never have been told."""
    states = States(open_profile(runtime.home, runtime.profile), call.host)
    for known in states.sessions():
        if known.transcript == call.heard.transcript or size_of(known.transcript) <= known.end:
            continue
        heard = Heard(kind="turn", session=known.session, transcript=known.transcript, cwd=known.cwd, agent=known.agent)
        environment = {**call.environment, "MEMORYD_USER": known.user, "MEMORYD_TRANSCRIPT_BYTES": ""}
        other = attrs.evolve(call, heard=heard, cwd=known.cwd, environment=environment)
        is_hidden = hidden_in(states, name_of(other), known.transcript).goes_on  # a private session, maybe one that runs now
        if not is_hidden and not why_unrecorded_now(other, runtime.home):
            with suppress(InvalidInput, StoreError):
                record_turns(runtime, other, settled=_is_at_rest(known.transcript))


def _known(call: Call) -> Known:
    heard = call.heard
    return Known(session=heard.session, transcript=heard.transcript or "", cwd=call.cwd, user=call.user, agent=heard.agent)


def _is_at_rest(path: str) -> bool:
    """Whether nobody seems to be writing an answer there now."""
    with suppress(OSError, ValueError):
        return time.time() - os.stat(path).st_mtime > REST_S
    return False


class _Recording:
    def __init__(self, runtime: Runtime, call: Call) -> None:
        self._runtime = runtime
        self._call = call
        self._workspace = project_of(call.cwd, look_at_git, runtime.config.capture.workspace) or None
        self._pauses = read_pauses(runtime.home)
        self._until = time.monotonic() + LONGEST_S
        self.problem = ""

    def was_paused(self, at: int) -> bool:
        return was_paused(self._pauses, at)

    def record(self, said: Said) -> bool:
        """False where the log does not take it now."""
        call = self._call
        if self.was_paused(time.time_ns() // 1000 if said.at is None else said.at):
            return True
        if time.monotonic() >= self._until:
            self.problem = "time is up"
            return False
        with scope(
            user=call.user, session=call.heard.session, workspace=self._workspace, platform=call.host, agent=said.agent or None
        ):
            try:
                accepted = self._runtime.sync_turn(
                    said.user, said.assistant, turn_id=f"{call.host}:{said.id}", created_at=None if said.at is None else said.at / 1e6
                )
            except JournalUnavailable as error:
                self.problem = error.reason
                return False
            except InvalidInput:
                return True  # it can never be recorded: the transcript keeps it
        if accepted.state == "held":  # kept in memory only: the place must not move past it
            self.problem = "held"
        return accepted.state != "held"
