"""One function a pragma, each with its reason, each asserted: SQLite ignores a pragma that it cannot obey without a word."""

from __future__ import annotations

import sys
import time
from typing import Literal

import apsw
import attrs

from memoryd.core import Value
from memoryd.errors import StoreBroken

__all__ = ["Options", "Synchronous", "apply_pragmas"]

Synchronous = Literal["NORMAL", "FULL"]
LEVELS: dict[Synchronous, int] = {"NORMAL": 1, "FULL": 2}


@attrs.frozen(slots=True, eq=False, repr=False)
class Options(Value):
    """How a connection behaves.

    ``synchronous`` NORMAL leaves fsync to a barrier, FULL syncs each commit.  ``busy_ms`` is how long a statement waits for another
    process's lock.  ``autocheckpoint`` is in pages, 0 for never.  ``wal_limit`` is how many bytes a write-ahead log may keep when it
    begins anew.  ``cache_kib`` bounds the page cache.  A ``readonly`` connection refuses every write.  ``creating`` is for whoever may be
    the first to open the file.
    """

    synchronous: Synchronous = "NORMAL"
    busy_ms: int = 2000
    autocheckpoint: int = 1000
    wal_limit: int = 8 << 20
    cache_kib: int = 8192
    readonly: bool = False
    creating: bool = False


def apply_pragmas(raw: apsw.Connection, options: Options) -> None:
    """Set everything that a connection of memoryd relies on; raises :class:`StoreBroken` where SQLite does not obey."""
    raw.set_busy_timeout(options.busy_ms)
    if options.creating:
        give_back(raw)
    write_ahead_log(raw, options.busy_ms)
    synchronous(raw, options.synchronous)
    sync_to_the_platter(raw)
    autocheckpoint(raw, options.autocheckpoint)
    wal_limit(raw, options.wal_limit)
    cache_size(raw, options.cache_kib)
    temp_store(raw)
    no_mmap(raw)
    secure_delete(raw)
    foreign_keys(raw)
    trusted_schema(raw)
    if options.readonly:
        query_only(raw)


def give_back(raw: apsw.Connection) -> None:
    """Pages that a large deletion frees can go back to the disk.  Only a file without content takes it, so it comes first; older files
    get it from ``memoryd repair``, and nothing else depends on it."""
    if raw.pragma("page_count") == 0:
        raw.pragma("auto_vacuum", "INCREMENTAL")


def write_ahead_log(raw: apsw.Connection, busy_ms: int) -> None:
    """Readers and one writer at once, and one sequential write a commit.  The switch itself does not honour the busy timeout."""
    until = time.monotonic() + busy_ms / 1000
    while True:
        try:
            return _set(raw, "journal_mode", "wal", "wal")
        except apsw.BusyError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.002)


def synchronous(raw: apsw.Connection, level: Synchronous) -> None:
    """NORMAL survives a killed process, and power loss up to the last barrier; FULL survives power loss after each commit."""
    _set(raw, "synchronous", level, LEVELS[level])


def sync_to_the_platter(raw: apsw.Connection) -> None:
    """On macOS fsync stops at the drive's cache; F_FULLFSYNC does not."""
    if sys.platform == "darwin":
        _set(raw, "fullfsync", 1, 1)
        _set(raw, "checkpoint_fullfsync", 1, 1)


def autocheckpoint(raw: apsw.Connection, pages: int) -> None:
    """A commit that also checkpoints is slow at random; hot connections turn it off and checkpoint elsewhere."""
    _set(raw, "wal_autocheckpoint", pages, pages)


def wal_limit(raw: apsw.Connection, size: int) -> None:
    """A log that grew while a reader pinned it shrinks at the first commit after the reader's end, and not only at the last close."""
    _set(raw, "journal_size_limit", size, size)


def cache_size(raw: apsw.Connection, kib: int) -> None:
    """Negative means KiB: a bound on memory that does not depend on the page size."""
    _set(raw, "cache_size", -kib, -kib)


def temp_store(raw: apsw.Connection) -> None:
    """Temporary b-trees stay in memory: no copy of anyone's text in a directory that is not private."""
    _set(raw, "temp_store", "MEMORY", 2)


def no_mmap(raw: apsw.Connection) -> None:
    """A failing disk under a mapping is a SIGBUS that kills the host; measured, a mapping also made reads beside a writer slower."""
    _set(raw, "mmap_size", 0, 0)


def secure_delete(raw: apsw.Connection) -> None:
    """What was forgotten is overwritten with zeros, not merely unlinked."""
    _set(raw, "secure_delete", 1, 1)


def foreign_keys(raw: apsw.Connection) -> None:
    """Off, whatever the build's default: the schemas declare none, and erasure must not cascade."""
    _set(raw, "foreign_keys", 0, 0)


def trusted_schema(raw: apsw.Connection) -> None:
    """A file that somebody else prepared cannot call functions with side effects from its views and indexes."""
    _set(raw, "trusted_schema", 0, 0)


def query_only(raw: apsw.Connection) -> None:
    """A reader that writes is a bug: make it loud."""
    _set(raw, "query_only", 1, 1)


def _set(raw: apsw.Connection, name: str, value: str | int, expected: str | int) -> None:
    raw.pragma(name, value)
    got = raw.pragma(name)
    if got != expected:
        raise StoreBroken(f"{raw.filename}: SQLite keeps {name} at {got!r} instead of {expected!r}", path=raw.filename)
