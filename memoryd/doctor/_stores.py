"""The store files of one profile: whole, small enough, and what lies beside them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memoryd.core import decode_event, from_micros
from memoryd.doctor._verdict import REPAIR, broken, doubtful, fine, remedy_of
from memoryd.errors import DeadlineExceeded, MemorydError, StoreCorrupt, StoreLocked
from memoryd.hosts import Check
from memoryd.runtime import now_micros
from memoryd.store import Connection, Options, connect, load_queries, lock_holder, lock_readers, wal_size

__all__ = ["clock", "leftovers", "locks", "stores", "write_ahead_logs"]

_SQL = load_queries("memoryd.doctor")
_SECONDS = 15.0  # for looking at one file
_PAGE = 512
_LONG_LOCK = 1.0
_FUTURE = 24 * 3600 * 1_000_000
_END_OF_TIME = 253_402_300_799_999_999  # of the year 9999; a later one is damage
_SET_BACK = 60 * 1_000_000
_OLD = 30 * 24 * 3600 * 1_000_000
_KINDS = ("log", "memory", "archive")
_REPAIR = {"log": REPAIR, "memory": "memoryd repair rebuilds it from the log", "archive": REPAIR}


def stores(directory: Path) -> Iterator[Check]:
    """SQLite's own check of each file, which includes that of the full-text index, and every event of the log decoded, as far as the
    time allows.  Nothing is locked."""
    for kind in _KINDS:
        if (path := directory / f"{kind}.db").exists():
            yield _looked_at(kind, path)


def _looked_at(kind: str, path: Path) -> Check:
    try:
        connection = connect(path, Options(readonly=True))
        try:
            with connection.progress(time.monotonic() + _SECONDS):
                return _whole(kind, connection)
        finally:
            connection.close()
    except DeadlineExceeded:
        return fine(kind, f"{path.stat().st_size} bytes, too many to look at all of them in {_SECONDS:g} s: what was looked at is whole")
    except StoreLocked as error:
        return doubtful(kind, str(error), remedy_of(error))
    except MemorydError as error:
        return broken(kind, str(error), remedy_of(error, _REPAIR[kind]))


def _whole(kind: str, connection: Connection) -> Check:
    [(found,)] = connection.all(_SQL["quick_check"])
    if found != "ok":
        return broken(kind, f"{connection.path} is damaged: {found.splitlines()[-1][:200]}", _REPAIR[kind])
    if kind != "log":
        return fine(kind, f"{connection.path} is whole")
    unreadable: list[int] = []
    with suppress(DeadlineExceeded):  # what was found by then counts
        for seq in _unreadable(connection):
            unreadable.append(seq)
    if unreadable:
        said = f"{len(unreadable)} events cannot be read, the first at place {unreadable[0]}; all others are delivered"
        return broken("log", said, _REPAIR["log"])
    return fine("log", f"{connection.path} is whole, {connection.all(_SQL['head'])[0][0] or 0} events")


def _unreadable(connection: Connection) -> Iterator[int]:
    after = 0
    while page := connection.all(_SQL["page"], (after, _PAGE)):
        for seq, event_id, at, kind, payload in page:
            if type(event_id) is not bytes or len(event_id) != 16 or type(at) is not int or at < 0:
                yield seq
                continue
            try:
                decode_event(event_id, at, kind, payload)
            except StoreCorrupt:
                yield seq
        after = page[-1][0]


def write_ahead_logs(directory: Path, cap: int) -> Check:
    """Whether each write-ahead log is folded back; who keeps one from it."""
    large = [path for kind in _KINDS if wal_size(path := directory / f"{kind}.db") > cap]
    if not large:
        return fine("write-ahead-log", f"each is at most {cap} bytes")
    path = max(large, key=wal_size)
    pids = {*lock_readers(path), *filter(None, [lock_holder(path)])}
    said = f"that of {path} has {wal_size(path)} bytes, the cap is {cap}"
    if pids:
        who = " and ".join(f"process {pid}" for pid in sorted(pids))
        return doubtful("write-ahead-log", f"{said}; {who} uses it", f"let {who} finish, or end it: then it shrinks by itself")
    return doubtful("write-ahead-log", said, "open the profile once (memoryd status): it is folded back in a pause")


def locks(directory: Path) -> Iterator[Check]:
    """A process that keeps a write lock for longer than any of ours does: most often one that was stopped."""
    paths = [path for kind in _KINDS if (path := directory / f"{kind}.db").exists()]
    before = {path: lock_holder(path) for path in paths}
    if any(before.values()):
        time.sleep(_LONG_LOCK)
    held = {path: pid for path, pid in before.items() if pid is not None and lock_holder(path) == pid}
    for path, pid in held.items():
        said = f"process {pid} holds the write lock of {path} and does not let go"
        yield doubtful("locks", said, f"let it go on (kill -CONT {pid}) or end it (kill {pid}): what waits is written then")
    if not held:
        yield fine("locks", "no process keeps a store locked")


def clock(directory: Path) -> Iterator[Check]:
    """What was written later than now, and events that are dated in the future."""
    now = now_micros()
    paths = [path for path in directory.glob("*.db*") if path.is_file()]
    newest = max((path.stat().st_mtime_ns // 1000 for path in paths), default=0)
    if newest - now > _SET_BACK:
        said = f"a store was written at {_when(newest)}, and now it is {_when(now)}: the clock was set back"
        yield doubtful("clock", said, "set the clock (timedatectl set-ntp true); order does not depend on it, times that are shown do")
    else:
        yield fine("clock", f"it is {_when(now)}, nothing was written later")
    if (directory / "log.db").exists() and (check := _dated_ahead(directory / "log.db", now)) is not None:
        yield check


def _dated_ahead(log: Path, now: int) -> Check | None:
    try:
        connection = connect(log, Options(readonly=True))
        try:
            with connection.progress(time.monotonic() + _SECONDS):
                [(count, first, latest)] = connection.all(_SQL["after"], (now + _FUTURE, _END_OF_TIME))
        finally:
            connection.close()
    except MemorydError:  # the check of the log itself says so
        return None
    if not count:
        return None
    said = f"{count} events are dated after tomorrow, the first at place {first}, the latest {_when(latest)}: they look newer than all"
    return doubtful("future-events", said, "memoryd forget --since that time, and record again with the right created_at")


def _when(micros: int) -> str:
    return from_micros(micros).strftime("%Y-%m-%d %H:%M:%SZ")


def leftovers(directory: Path) -> Iterator[Check]:
    """What waits in the spool, what was put aside, and old copies, which keep what was forgotten since."""
    waiting = sorted((directory / "spool").glob("*.held"))
    aside = sorted((directory / "spool" / "quarantine").glob("*"))
    if aside:
        remedy = "what could be read of it is in the log; delete it when you do not need the rest"
        yield doubtful("spool", f"{len(aside)} damaged spool files are kept in {aside[0].parent}", remedy)
    elif waiting:
        yield doubtful("spool", f"{len(waiting)} spool files wait in {waiting[0].parent}", "check the log: the next open takes them in")
    else:
        yield fine("spool", "nothing waits")
    beside = [*directory.glob("*.backup"), *directory.glob("quarantine/*"), *directory.parent.glob(f"{directory.name}.before-*")]
    copies = [path for path in sorted(beside) if now_micros() - path.stat().st_mtime_ns // 1000 > _OLD]
    if copies:
        names = ", ".join(path.name for path in copies)
        said = f"{len(copies)} copies of an upgrade, repair or restore are older than 30 days ({names}); they keep what was forgotten since"
        yield doubtful("old-copies", said, f"delete them: rm -r '{copies[0]}'" + (" ..." if copies[1:] else ""))

