"""What a transcript has from while its session, or its folder, was kept out of memory stays out when the session goes on in the open.

A transcript does not say so of its records, so each event that a hook tells of notes how far the file has come by then.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import attrs

from memoryd.errors import MemorydError
from memoryd.hosts._call import Call, is_hidden
from memoryd.hosts._state import Hidden, Known, States
from memoryd.store import open_profile

__all__ = ["hidden_in", "hide", "name_of", "shown_again", "without_hidden"]


PATIENCE_S = 5.0


def name_of(call: Call) -> str:
    """What the states of the transcript that ``call`` tells of go by: a subagent's has some of its own."""
    heard = call.heard
    return heard.session if not heard.agent else f"{heard.session}\0{heard.transcript}"


def hide(call: Call, home: Path) -> None:
    """Note that the transcript is kept out from where that began up to here; nothing where it is because of a pause only."""
    heard = call.heard
    with suppress(MemorydError, OSError, ValueError):
        if not heard.transcript or not heard.session or not is_hidden(call, home):
            return
        states, name = States(open_profile(home, call.profile), call.host), name_of(call)
        with states.taking(name, PATIENCE_S):
            hidden = hidden_in(states, name, heard.transcript)
            start = _begun(call, states.known(name), hidden)
            fresh = attrs.evolve(hidden, path=heard.transcript, inode=os.stat(heard.transcript).st_ino)
            states.put(name, fresh.more(start, max(start, call.size), goes_on=True))


def _begun(call: Call, known: Known, hidden: Hidden) -> int:
    """Where what is kept out begins: what is there at a prompt was said in the open, unless the last event was kept out, too."""
    last = hidden.ranges[-1][1] if hidden.ranges else 0
    if hidden.goes_on:
        return last
    if call.heard.kind in ("start", "prompt"):
        return max(last, call.size)
    return max(last, known.end if known.transcript == call.heard.transcript else 0)


def hidden_in(states: States, name: str, path: str) -> Hidden:
    """What is hidden in the file at ``path``; nothing where it is another file by now."""
    hidden = states.hidden(name)
    with suppress(OSError, ValueError):
        if hidden.path == path and os.stat(path).st_ino == hidden.inode:
            return hidden
    return Hidden()


def shown_again(states: States, call: Call) -> Hidden:
    """What is hidden in the transcript of ``call``, which may be recorded: what is there when a session begins again was said before,
    and what came after a call that is told late was not said in the open."""
    name = name_of(call)
    hidden = hidden_in(states, name, call.heard.transcript or "")
    if not hidden.goes_on:
        return hidden
    start, last = hidden.ranges[-1]
    begins = call.heard.kind in ("start", "prompt") and call.size >= last
    if not begins and call.size <= last:
        return hidden.more(start, sys.maxsize, goes_on=True)
    hidden = hidden.more(last, call.size if begins else last, goes_on=False)
    if call.heard.kind != "gate":  # it is asked before what is spooled, which says where the session began again
        states.put(name, hidden)
    return hidden


def without_hidden(source: bytes, hidden: Hidden) -> bytes:
    """The bytes of a transcript without those that are hidden."""
    kept, at = [], 0
    for start, end in hidden.ranges:
        kept.append(source[at:start])
        at = max(at, end)
    return b"".join([*kept, source[at:]])
