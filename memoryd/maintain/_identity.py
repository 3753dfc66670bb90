"""Whose a store file is, and which epoch its log has: what changes when a copy becomes a profile of its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoryd.store import Connection, Options, connect, load_queries, write_identity

__all__ = ["SQL", "bad_events", "become", "identity_of", "mend_log", "read_log_place", "renew_epoch", "staged"]

SQL = load_queries("memoryd.maintain")
_WRITE = Options(synchronous="FULL", busy_ms=0)


@contextmanager
def staged(path: Path) -> Iterator[Connection]:
    """A connection to a store in the making."""
    connection = connect(path, _WRITE)
    try:
        yield connection
    finally:
        connection.close()


def read_log_place(path: Path) -> tuple[str, int]:
    """The epoch of the log at ``path`` and the place of its last event; empty and 0 where there is no log."""
    if not path.exists():
        return "", 0
    with staged(path) as log:
        row = log.one(SQL["log_place"])
    return (str(row[0]), int(row[1])) if row is not None else ("", 0)


def identity_of(path: Path) -> tuple[str, str]:
    """Name and instance of the profile that the store at ``path`` was made for."""
    with staged(path) as store:
        row = store.one(SQL["identity"])
    return (bytes(row[0]).decode("utf-8", "surrogatepass"), str(row[1])) if row is not None else ("", "")


def bad_events(path: Path) -> int:
    """Rows of the log at ``path`` that no memoryd wrote: SQLite does not see such damage."""
    with staged(path) as log:
        return int(log.all(SQL["count_bad_events"])[0][0])


def mend_log(path: Path) -> int:
    """Events that could not be read keep their places, without words, so that what comes after them does; how many those are."""
    with staged(path) as log, log.transaction():
        log.run(SQL["drop_bad_events"])
        return log.run(SQL["fill_gaps"])


def renew_epoch(path: Path) -> None:
    """From now on no cursor of before means anything to the log at ``path``: whoever keeps one begins again, by id."""
    if path.exists():
        with staged(path) as log:
            log.run(SQL["renew_epoch"], (secrets.token_hex(8),))


def become(directory: Path, name: str) -> None:
    """The profile in the making in ``directory`` is ``name`` from now on, an instance of its own."""
    instance = secrets.token_hex(16)
    for path in sorted(directory.glob("*.db")):
        with staged(path) as store:
            store.run(SQL["set_identity"], (name.encode("utf-8", "surrogatepass"), instance))
    write_identity(directory, name, instance)
