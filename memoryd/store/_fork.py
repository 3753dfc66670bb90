"""A fork finds SQLite at rest.

SQLite keeps its locks, and what it knows of open files, in the memory of the process.  A child that inherits these and opens the same
file waits for a mutex that a thread of the parent held, or believes to hold file locks that it does not: then the parent's close removes
the log under its feet.  So before a fork whatever is open waits for the end of its transaction and closes; afterwards it opens again in
the parent, and the child begins with an SQLite that knows of no file.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Protocol
from weakref import WeakSet

__all__ = ["OUTSIDE", "Resting", "forked_badly", "rests"]

_PATIENCE = 1.0  # seconds that a fork waits for the end of transactions

OUTSIDE = threading.RLock()
"""Held while SQLite works on no registered connection: while one opens, or a text is taken to pieces."""


class Resting(Protocol):
    """What has to be at rest during a fork.  ``hold`` waits and keeps others out until ``release``; ``rest`` and ``wake`` come between."""

    def hold(self, seconds: float) -> bool: ...
    def rest(self) -> None: ...
    def wake(self) -> None: ...
    def release(self) -> None: ...


_known: WeakSet[Resting] = WeakSet()
_one_fork = threading.RLock()
_held: list[Resting] | None = None
_bad = False


def rests(one: Resting) -> None:
    """From now on every fork sends ``one`` to rest."""
    with OUTSIDE:
        _known.add(one)


def forked_badly() -> bool:
    """True in a child whose parent was in the middle of a transaction for longer than a fork waits: SQLite cannot be used here."""
    return _bad


def _before() -> None:
    global _held
    _one_fork.acquire()
    until = time.monotonic() + _PATIENCE
    _held = _hold_all()
    while _held is None and time.monotonic() < until:
        time.sleep(0.001)
        _held = _hold_all()
    for one in _held or ():
        one.rest()


def _hold_all() -> list[Resting] | None:
    """All or nothing, so that threads which need two of them come to their end."""
    if not OUTSIDE.acquire(timeout=0.05):
        return None
    held: list[Resting] = []
    for one in list(_known):
        if not one.hold(0.05):
            _release(held)
            return None
        held.append(one)
    return held


def _release(held: list[Resting]) -> None:
    for one in held:
        one.release()
    OUTSIDE.release()


def _after_in_parent() -> None:
    for one in _held or ():
        one.wake()
    if _held is not None:
        _release(_held)
    _one_fork.release()


def _after_in_child() -> None:
    global _bad
    _bad = _bad or _held is None
    if _held is not None:
        _known.clear()
        OUTSIDE.release()
    _one_fork.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
