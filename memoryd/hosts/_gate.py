"""The gate for a host's compaction: payload in, decision in the host's bytes out.  Needs the local disk only; no trio in here.

The daemon answers with the same code as ``python -m memoryd _gate``, which the hook program runs where there is no daemon.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from memoryd.checkpoint import Gate, gate_mode, refusal
from memoryd.core import Config, Receipt
from memoryd.errors import CheckpointBlocked, ConfigError, InvalidInput, MemorydError
from memoryd.hosts._call import Call, why_unrecorded
from memoryd.hosts._consent import read_pauses, was_paused
from memoryd.hosts._hide import shown_again, without_hidden
from memoryd.hosts._shelves import Shelves
from memoryd.hosts._state import Saved, States
from memoryd.hosts._transcript import Stamp, archive_rows, read_stable, stamp_of, without_pauses
from memoryd.settings import load_config
from memoryd.store import ProfileStore, open_profile
from memoryd.wire import HookReply

__all__ = ["answer_gate", "archive_quietly"]

DEADLINE_S = 20.0


def answer_gate(call: Call, shelves: Shelves, deadline_s: float = DEADLINE_S) -> HookReply:
    """Whether the compaction that ``call`` tells of may go on.  Never raises; whatever goes wrong is a refusal with its reason."""
    event = call.event
    try:
        receipt = _decide(call, shelves, time.monotonic() + deadline_s)
        return call.dialect.allow(event, note_for(receipt))
    except CheckpointBlocked as blocked:
        return call.dialect.refuse(event, str(blocked))
    except Exception as error:  # noqa: BLE001  the gate fails closed: what nobody thought of is a refusal too
        return call.dialect.refuse(event, str(refusal(error, call.heard.session)))


def note_for(receipt: Receipt) -> str:
    """One line for whoever writes the summary; empty where there is nothing to read."""
    if receipt.verdict != "archived":
        return ""
    return (
        f"The whole conversation before this summary is kept by memoryd as checkpoint {receipt.id[:16]} ({receipt.rows} messages). "
        f"Say so in the summary: `memoryd checkpoint read {receipt.id[:16]} --range A:B` prints messages A to B of it word for word."
    )


def _decide(call: Call, shelves: Shelves, deadline: float) -> Receipt:
    try:
        loaded = load_config(call.home, call.profile, environ=call.environ_here)
    except ConfigError as error:
        return _without_gate(call, error, Config())
    try:
        profile = open_profile(loaded.home, loaded.profile)
    except MemorydError as error:
        return _without_gate(call, error, loaded.config)
    call = attrs.evolve(call, home_here=loaded.home, unrecorded=why_unrecorded(call, loaded.config, loaded.home))
    with _opened_gate(profile, loaded.config, call, shelves) as gate:
        return _checkpoint(call, gate, profile, deadline)


@contextmanager
def _opened_gate(profile: ProfileStore, config: Config, call: Call, shelves: Shelves) -> Iterator[Gate]:
    second = Path(config.gate.fallback_dir).expanduser() if config.gate.fallback_dir else None
    with shelves.lent(profile, second) as shelf:
        yield Gate(
            profile, mode=config.gate.mode, quota_bytes=config.gate.quota_bytes, deadline_s=config.deadlines.checkpoint,
            environ=call.environment, shelf=shelf,
        )  # fmt: skip


def _without_gate(call: Call, error: MemorydError, config: Config) -> Receipt:
    """There is no place for the gate's own notes: only the mode is left."""
    mode, _ = gate_mode(config.gate.mode, call.environment)
    if mode == "block":
        raise refusal(error, call.heard.session) from error
    return Receipt("", 0, "off" if mode == "off" else "warned", call.heard.session, warning=f"not archived: {error}")


def _checkpoint(call: Call, gate: Gate, profile: ProfileStore, deadline: float) -> Receipt:
    heard, asked = call.heard, _Asked(gate, call, call.heard.why, deadline)
    if call.unrecorded:
        return asked.checkpoint(None, private=True)
    if heard.problem:
        return asked.checkpoint(_failing(InvalidInput("payload", heard.problem)))
    if heard.transcript is None:
        return asked.checkpoint(None)
    return _archive(call, asked, States(profile, call.host))


def archive_quietly(call: Call, home: Path, shelves: Shelves, trigger: str, deadline_s: float = DEADLINE_S) -> None:
    """Archive the transcript where nothing can be refused any more: after a compaction, at the end of a session.

    What the gate had missed is filled in; a failure leaves a receipt and stops nobody.  Raises
    :class:`~memoryd.errors.StoreError` where the profile cannot be opened.
    """
    if not call.heard.transcript:
        return
    profile = open_profile(home, call.profile)
    here = attrs.evolve(call, environment={**call.environment, "MEMORYD_GATE": "warn"}, home_here=home)
    config = load_config(home, call.profile, environ=here.environ_here).config
    with _opened_gate(profile, config, here, shelves) as gate:
        _archive(here, _Asked(gate, here, trigger, time.monotonic() + deadline_s), States(profile, call.host))


class _Asked:
    """The gate, asked about one session until ``deadline`` (``time.monotonic()`` seconds)."""

    def __init__(self, gate: Gate, call: Call, trigger: str, deadline: float) -> None:
        self._gate = gate
        self._user, self._host, self._trigger = call.user, call.host, trigger
        self._session = call.heard.session or "unknown"  # a refusal wants a name, for its count and its release
        self._deadline = deadline

    def checkpoint(self, rows: Iterable[object] | None, *, source: bytes | None = None, private: bool = False) -> Receipt:
        left = max(0.1, self._deadline - time.monotonic())
        return self._gate.checkpoint(
            rows, user=self._user, session=self._session, host=self._host, trigger=self._trigger, source=source, private=private,
            deadline_s=left,
        )  # fmt: skip

    def again(self, id: str) -> Receipt | None:
        return self._gate.again(id, user=self._user, session=self._session, host=self._host, trigger=self._trigger)


def _archive(call: Call, asked: _Asked, states: States) -> Receipt:
    """Archive the transcript; one that is as it was at the last checkpoint is not read again."""
    path, session = call.heard.transcript or "", call.heard.session
    saved = states.saved(session)
    again = _unchanged(asked, saved, path)
    if again is not None:
        return again
    try:
        source, stamp = read_stable(path)
        _check_grown(saved, path, stamp)
        source = without_hidden(source, shown_again(states, call))
        if (pauses := read_pauses(call.home_here)) if call.home_here is not None else ():
            source = without_pauses(call.dialect, source, lambda at: was_paused(pauses, at))
        if not source:
            return asked.checkpoint(None)  # all of it was said while nothing was to be recorded
        rows = archive_rows(call.dialect, source)
    except (InvalidInput, MemoryError) as error:
        receipt = asked.checkpoint(_failing(error))
        states.put(session, Saved())  # it was let pass: the file as it is then counts from now on
        return receipt
    receipt = asked.checkpoint(rows, source=source)
    if receipt.verdict == "archived":  # one with a warning is asked for again: in the second archive, or over the quota
        known = receipt.id if stamp.sure and not receipt.warning else ""
        states.put(session, Saved(path=path, inode=stamp.inode, size=stamp.size, changed=stamp.changed, checkpoint=known))
    return receipt


def _check_grown(saved: Saved, path: str, stamp: Stamp) -> None:
    if (saved.path, saved.inode) == (path, stamp.inode) and stamp.size < saved.size:
        raise InvalidInput("transcript", f"{path} has shrunk from {saved.size:,} to {stamp.size:,} bytes since its last checkpoint")


def _unchanged(asked: _Asked, saved: Saved, path: str) -> Receipt | None:
    """The receipt of the last checkpoint, where the file is as it was then and the archive still has it."""
    if not saved.checkpoint or saved.path != path:
        return None
    with suppress(OSError, ValueError, MemorydError):
        now = stamp_of(os.stat(path))
        if (now.inode, now.size, now.changed) == (saved.inode, saved.size, saved.changed):
            return asked.again(saved.checkpoint)
    return None


def _failing(error: Exception) -> Iterator[object]:
    yield from ()
    raise error
