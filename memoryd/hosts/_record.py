"""From an event of a host to turns in the log, by way of the host's transcript.  Blocking: runs on a thread of its own."""

from __future__ import annotations

import time

from memoryd.core import scope
from memoryd.errors import InvalidInput, JournalUnavailable
from memoryd.hosts._call import Call
from memoryd.hosts._consent import read_pauses, was_paused
from memoryd.hosts._project import look_at_git, project_of
from memoryd.hosts._state import States
from memoryd.hosts._turns import Said, take_turns
from memoryd.runtime import Runtime
from memoryd.store import open_profile

__all__ = ["NotRecorded", "record_turns"]

PATIENCE_S = 5.0
LONGEST_S = 30.0


class NotRecorded(Exception):
    """The log could not take everything now; what is left is read again from where it stopped."""


def record_turns(runtime: Runtime, call: Call, *, settled: bool) -> None:
    """Record what the transcript has that was not recorded yet; ``settled`` where the last answer is done.

    Raises :class:`NotRecorded`, :class:`~memoryd.errors.StoreError`, and where the file cannot be read
    :class:`~memoryd.errors.InvalidInput`.
    """
    heard = call.heard
    if not heard.transcript or not heard.session:
        return
    states = States(open_profile(runtime.home, runtime.profile), call.host)
    name = heard.session if not heard.agent else f"{heard.session}\0{heard.transcript}"
    recording = _Recording(runtime, call)
    with states.taking(name, PATIENCE_S):
        place = take_turns(
            call.dialect, heard.transcript, states.place(name), recording.record, states.digest, settled=settled, said=heard.said,
            agent=heard.agent,
        )  # fmt: skip
        states.put(name, place)
    if recording.problem:
        raise NotRecorded(recording.problem)


class _Recording:
    def __init__(self, runtime: Runtime, call: Call) -> None:
        self._runtime = runtime
        self._call = call
        self._workspace = project_of(call.cwd, look_at_git, runtime.config.capture.workspace) or None
        self._pauses = read_pauses(runtime.home)
        self._until = time.monotonic() + LONGEST_S
        self.problem = ""

    def record(self, said: Said) -> bool:
        """False where the log does not take it now."""
        call = self._call
        if was_paused(self._pauses, time.time_ns() // 1000 if said.at is None else said.at):
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
