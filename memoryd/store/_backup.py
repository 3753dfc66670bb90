"""A verified copy of a store file, taken while it is in use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import apsw

from memoryd.errors import StoreCorrupt
from memoryd.store._connection import Connection, store_uri
from memoryd.store._errors import os_errors, raise_mapped
from memoryd.store._fork import OUTSIDE
from memoryd.store._sync import fsync_directory

__all__ = ["back_up"]

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
    except BaseException:
        _remove(draft)
        raise
    fsync_directory(target.parent)


def _copy(source: Connection, draft: Path, mode_of: Path, vfs: str | None) -> None:
    try:
        copy = apsw.Connection(store_uri(draft, mode_of), CREATE, vfs)
    except apsw.Error as error:
        raise_mapped(error, draft)
    try:
        progress = copy.backup("main", source.raw, "main")
        try:
            progress.step(-1)
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


def _remove(draft: Path) -> None:
    with os_errors(draft):
        for suffix in ("", "-journal", "-wal", "-shm"):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)
