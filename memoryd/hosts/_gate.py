"""The gate for a host's compaction: payload in, decision in the host's bytes out.  Needs the local disk only; no trio in here.

The daemon answers with the same code as ``python -m memoryd _gate``, which the hook program runs where there is no daemon.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import attrs

from memoryd.checkpoint import Gate, gate_mode, refusal
from memoryd.core import Config, Receipt
from memoryd.errors import CheckpointBlocked, ConfigError, InvalidInput, MemorydError
from memoryd.hosts._call import Call
from memoryd.hosts._dialect import Heard
from memoryd.hosts._state import Saved, States
from memoryd.hosts._transcript import Stamp, archive_rows, read_stable, stamp_of
from memoryd.settings import load_config
from memoryd.store import ProfileStore, open_profile
from memoryd.wire import HookReply

__all__ = ["answer_gate", "checkpoint_transcript"]

DEADLINE_S = 20.0


def answer_gate(call: Call, deadline_s: float = DEADLINE_S) -> HookReply:
    """Whether the compaction that ``call`` tells of may go on.  Never raises; whatever goes wrong is a refusal with its reason."""
    event = call.event
    try:
        receipt = _decide(call, time.monotonic() + deadline_s)
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


def _decide(call: Call, deadline: float) -> Receipt:
    try:
        loaded = load_config(None, call.profile, environ=call.environ_here)
    except ConfigError as error:
        return _without_gate(call, error, Config())
    try:
        profile = open_profile(loaded.home, loaded.profile)
    except MemorydError as error:
        return _without_gate(call, error, loaded.config)
    gate = _make_gate(profile, loaded.config, call)
    try:
        return _checkpoint(call, gate, profile, deadline)
    finally:
        gate.close()


def _make_gate(profile: ProfileStore, config: Config, call: Call) -> Gate:
    second = Path(config.gate.fallback_dir).expanduser() if config.gate.fallback_dir else None
    return Gate(
        profile, mode=config.gate.mode, fallback_dir=second, quota_bytes=config.gate.quota_bytes,
        deadline_s=config.deadlines.checkpoint, environ=call.environment,
    )  # fmt: skip


def _without_gate(call: Call, error: MemorydError, config: Config) -> Receipt:
    """There is no place for the gate's own notes: only the mode is left."""
    mode, _ = gate_mode(config.gate.mode, call.environment)
    if mode == "block":
        raise refusal(error, call.heard.session) from error
    return Receipt("", 0, "off" if mode == "off" else "warned", call.heard.session, warning=f"not archived: {error}")


def _checkpoint(call: Call, gate: Gate, profile: ProfileStore, deadline: float) -> Receipt:
    heard, left = call.heard, max(0.1, deadline - time.monotonic())
    if not heard.session:
        heard = attrs.evolve(heard, session="unknown")
    asked = {"user": call.user, "session": heard.session, "host": call.host, "trigger": heard.why, "deadline_s": left}
    if call.unrecorded:
        return gate.checkpoint(None, private=True, **asked)
    if heard.problem:
        return gate.checkpoint(_failing(InvalidInput("payload", heard.problem)), **asked)
    if heard.transcript is None:
        return gate.checkpoint(None, **asked)
    return checkpoint_transcript(call, gate, States(profile, call.host), attrs.evolve(heard, transcript=heard.transcript), left)


def checkpoint_transcript(call: Call, gate: Gate, states: States, heard: Heard, deadline_s: float) -> Receipt:
    """Archive the transcript that ``heard`` names; one that is as it was at the last checkpoint is not read again."""
    path, saved, until = heard.transcript or "", states.saved(heard.session), time.monotonic() + deadline_s
    asked = {"user": call.user, "session": heard.session, "host": call.host, "trigger": heard.why}
    again = _unchanged(gate, saved, path, asked)
    if again is not None:
        return again
    try:
        source, stamp = read_stable(path)
        if saved.path == path and saved.stamp[0] == stamp.inode and stamp.size < saved.stamp[1]:
            raise InvalidInput("transcript", f"{path} has shrunk from {saved.stamp[1]:,} to {stamp.size:,} bytes since its last checkpoint")
        rows = archive_rows(call.dialect, source)
    except (InvalidInput, MemoryError) as error:
        receipt = gate.checkpoint(_failing(error), **asked)
        states.put(heard.session, Saved())  # a release lets the next one pass too, with the file as it is then
        return receipt
    receipt = gate.checkpoint(rows, source=source, deadline_s=max(0.1, until - time.monotonic()), **asked)
    if receipt.verdict == "archived" and not receipt.warning and stamp.sure:
        states.put(heard.session, Saved(path=path, stamp=_parts(stamp), checkpoint=receipt.id))
    return receipt


def _unchanged(gate: Gate, saved: Saved, path: str, asked: dict[str, str]) -> Receipt | None:
    """The receipt of the last checkpoint, where the file is as it was then and the archive still has it."""
    if not saved.checkpoint or saved.path != path:
        return None
    with suppress(OSError, ValueError, MemorydError):
        if _parts(stamp_of(os.stat(path))) == saved.stamp:
            return gate.again(saved.checkpoint, **asked)
    return None


def _parts(stamp: Stamp) -> tuple[int, int, int]:
    return stamp.inode, stamp.size, stamp.changed


def _failing(error: Exception) -> Iterator[object]:
    yield from ()
    raise error
