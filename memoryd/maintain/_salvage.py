"""A sound store made of what can be read of a damaged one."""

from __future__ import annotations

import shutil
from pathlib import Path

import attrs

from memoryd.checkpoint import Archive
from memoryd.errors import StoreCorrupt
from memoryd.journal import Journal, Limits
from memoryd.store import ProfileStore, Salvaged, os_errors, private_directory, salvage

__all__ = ["copy_store", "make_store", "salvage_store", "salvaged_log"]

_OWN = frozenset({"log", "remote_cursor", "ingested"})
"""Tables of the log that a new epoch begins anew."""


def copy_store(path: Path, target: Path) -> None:
    """The bytes of a store that nobody has open, with its write-ahead log."""
    for suffix in ("", "-wal"):
        source = path.with_name(path.name + suffix)
        if source.exists():
            with os_errors(target):
                shutil.copyfile(source, target.with_name(target.name + suffix))


def make_store(profile: ProfileStore, name: str) -> None:
    """An empty ``log.db`` or ``archive.db`` in the profile's directory."""
    if name == "log.db":
        Journal(profile, Limits(free_floor=0)).close()
    else:
        Archive.open(profile).close()


def salvage_store(made: ProfileStore, damaged: Path, into: Path) -> Salvaged:
    """Make a store of the same name in ``into``, the directory of ``made``, of what can be read of ``damaged``, of which a copy is read."""
    private_directory(into / "damaged")
    copy = into / "damaged" / damaged.name
    copy_store(damaged, copy)
    make_store(made, damaged.name)
    try:
        return salvage(copy, into / damaged.name, _OWN if damaged.name == "log.db" else frozenset())
    finally:
        shutil.rmtree(into / "damaged", ignore_errors=True)


def salvaged_log(profile: ProfileStore, scratch: Path) -> ProfileStore:
    """The profile with what can be read of its log, in a directory below ``scratch``."""
    into = scratch / "salvaged"
    private_directory(into)
    shutil.copyfile(profile.directory / "profile.key", into / "profile.key")
    made, damaged = attrs.evolve(profile, directory=into), profile.directory / "log.db"
    if not salvage_store(made, damaged, into).rows:
        raise StoreCorrupt(f"{damaged} is damaged, and none of it can be read", path=str(damaged))
    return made
