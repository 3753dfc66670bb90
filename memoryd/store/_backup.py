"""A verified copy of a store file, taken while it is in use."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw

from memoryd.errors import StoreCorrupt
from memoryd.store._connection import Connection, connect, store_uri
from memoryd.store._errors import os_errors, raise_mapped
from memoryd.store._fork import OUTSIDE
from memoryd.store._pragmas import Options
from memoryd.store._sync import fsync_directory

__all__ = ["back_up", "check_store", "snapshot"]

PAGES = 4096  # copied between two looks at how far it is

CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI


def back_up(source: Connection, target: Path, *, mode_of: Path, vfs: str | None = None) -> None:
    """Copy what ``source`` sees into ``target``: one file with the mode of ``mode_of``, checked in full before it gets its name."""
    draft = target.with_name(f"{target.name}.draft")
    try:
        _remove(draft)
        with OUTSIDE:
            _copy(source, draft, mode_of, vfs)
        with os_errors(target):
            os.replace(draft, target)
    except BaseException:  # half a copy is no backup
        _remove(draft)
        raise
    fsync_directory(target.parent)


def snapshot(
    path: Path, target: Path, *, mode_of: Path, on_progress: Callable[[int, int], None] = lambda done, total: None, vfs: str | None = None
) -> None:
    """Copy the store at ``path`` as it is at one instant, while anybody uses it, into one new file; both are in order or this raises.

    ``on_progress`` is told (bytes done, bytes in all).  The write-ahead log grows by what is written meanwhile.
    """
    source = connect(path, Options(readonly=True, busy_ms=10_000), vfs=vfs)
    try:
        with source.transaction("DEFERRED"), OUTSIDE:
            source.all("SELECT count(*) FROM sqlite_schema")  # from here on it sees no change
            _copy(source, target, mode_of, vfs, on_progress)
    except BaseException:  # the same
        _remove(target)
        raise
    finally:
        source.close()
    fsync_directory(target.parent)


def check_store(path: Path) -> str:
    """What SQLite finds wrong with the file at ``path``, which nobody else has open; an empty text where it is in order."""
    try:
        connection = apsw.Connection(store_uri(path), apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    except apsw.Error as error:
        return str(error)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # looking changes nothing
        found = connection.execute("PRAGMA integrity_check(1)").fetchall()
    except apsw.Error as error:
        return str(error)
    finally:
        with suppress(apsw.Error):
            connection.close(True)
    return "" if found == [("ok",)] else str(found[0][0]).splitlines()[-1]


def _copy(
    source: Connection, draft: Path, mode_of: Path, vfs: str | None, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> None:
    try:
        copy = apsw.Connection(store_uri(draft, mode_of), CREATE, vfs)
    except apsw.Error as error:
        raise_mapped(error, draft)
    try:
        progress = copy.backup("main", source.raw, "main")
        try:
            _step(progress, copy, on_progress)
        finally:
            progress.close(True)  # its own context manager ends in SystemError where the disk goes on failing
        copy.pragma("journal_mode", "delete")  # a backup is one file, without a log beside it
        found = copy.execute("PRAGMA integrity_check(1)").fetchall()
    except apsw.Error as error:
        raise_mapped(error, draft, copy.system_errno)
    finally:
        with suppress(apsw.Error):  # what went wrong before is the one to tell, and what was checked in full stays so
            copy.close(True)
    if found != [("ok",)]:
        raise StoreCorrupt(f"{source.path} is damaged; nothing was changed: restore a backup", path=str(source.path))


def _step(progress: apsw.Backup, copy: apsw.Connection, on_progress: Callable[[int, int], None]) -> None:
    while not progress.done:
        progress.step(PAGES)
        size = copy.pragma("page_size")
        on_progress((progress.page_count - progress.remaining) * size, progress.page_count * size)


def _remove(draft: Path) -> None:
    with os_errors(draft):
        for suffix in ("", "-journal", "-wal", "-shm"):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)
