"""Export: a log as JSON lines.  The same events give the same bytes, wherever they are exported from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import attrs

from memoryd.core import Config, Entry, Erased, Forget, Value
from memoryd.errors import ConfigError
from memoryd.journal import Erasures, Journal
from memoryd.runtime._exports import note_export
from memoryd.runtime._kernel import open_journal
from memoryd.runtime._portable import Portable, portable_event, portable_line, text_out
from memoryd.store import ProfileStore, open_profile, os_errors

__all__ = ["FORMAT", "VERSION", "Exported", "export_events", "opened_log"]

Told = Callable[[int, int], None]

FORMAT = "memoryd-export"
VERSION = 1
_PAGE, _PAGE_BYTES = 1024, 4 << 20


@attrs.frozen(slots=True, eq=False, repr=False)
class Exported(Value):
    """How many events were written, and how many of the log cannot be read; ``user`` None means all users."""

    events: int
    user: str | None
    unreadable: int = 0


@contextmanager
def opened_log(home: Path, profile: str, config: Config) -> Iterator[tuple[ProfileStore, Journal]]:
    """The log of a profile without a runtime.  Blocking.  Raises :class:`ConfigError` under the null backend, which has none."""
    if config.backend == "null":
        raise ConfigError('backend: "null" turns capture off, so that there is no log')
    store = open_profile(home, profile)
    journal = open_journal(store, config, None)
    try:
        journal.ingest_spool()
        yield store, journal
    finally:
        journal.close()


def export_events(
    home: Path, profile: str, config: Config, user: str | None, target: Path | IO[bytes],
    on_progress: Told = lambda done, total: None,
) -> Exported:  # fmt: skip
    """Write the events of ``user``, or of all users, to a file (mode 0600, replaced only when all is on disk) or an open stream.

    Checkpoints are not part of it.  Blocking; memory stays bounded.
    """
    with opened_log(home, profile, config) as (store, journal):
        if not isinstance(target, Path):
            return _write(journal, user, target, on_progress)
        if target.exists() and not target.is_file():  # a pipe or a device is written to, not replaced
            with os_errors(target), open(target, "wb") as stream:
                return _write(journal, user, stream, on_progress)
        path = Path(os.path.realpath(target))
        with os_errors(path), _replacing(path) as stream:
            done = _write(journal, user, stream, on_progress)
        note_export(store.directory, path)
        return done


def _write(journal: Journal, user: str | None, stream: IO[bytes], on_progress: Told) -> Exported:
    head = journal.head().seq
    whose = {} if user is None else {"user": text_out(user)}
    stream.write(portable_line({"format": FORMAT, "version": VERSION, **whose}))
    count = 0
    for entry in _entries(journal, user, head, on_progress):
        targets = journal.ids_of(entry.event.targets) if isinstance(entry.event, Forget) else ()
        stream.write(portable_line(portable_event(Portable(entry.event, targets))))
        count += 1
    stream.write(portable_line({"end": count}))
    stream.flush()
    return Exported(count, user, len(journal.unreadable))


def _entries(journal: Journal, user: str | None, head: int, on_progress: Told) -> Iterator[Entry]:
    """The events up to ``head`` that are about ``user``; an erased one says no more whose it was, but a forget of its user does."""
    erased = _erased_of(journal, user)
    read = Erasures(journal).read
    at = 0
    while at < head and (entries := read(at, _PAGE, _PAGE_BYTES)):
        for entry in entries:
            if entry.seq <= head and _is_of(entry, user, erased):
                yield entry
        at = entries[-1].seq
        on_progress(min(at, head), head)


def _erased_of(journal: Journal, user: str | None) -> frozenset[int]:
    forgets = [entry.event for entry in journal.forgets()] if user is not None else []
    return frozenset(seq for event in forgets if isinstance(event, Forget) and event.scope.user == user for seq in event.targets)


def _is_of(entry: Entry, user: str | None, erased: frozenset[int]) -> bool:
    if user is None:
        return True
    return entry.seq in erased if isinstance(entry.event, Erased) else entry.event.scope.user == user


# -- files -------------------------------------------------------------------------------------------------------------------


@contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    """A private file that takes the place of ``target`` when the block has ended well, and leaves nothing otherwise."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, target)
    except BaseException:  # half an export must not be taken for one
        draft.unlink(missing_ok=True)
        raise
