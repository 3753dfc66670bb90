"""The disk below the home: its kind, its room, whether it syncs, who may read there."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from memoryd.core import Config
from memoryd.doctor._verdict import broken, doubtful, fine
from memoryd.hosts import Check
from memoryd.journal import default_floor
from memoryd.store import file_system_type, free_bytes, is_remote

__all__ = ["disk", "file_system", "permissions", "place"]

_SLOW_MS = 250.0
_SYNCS = 5
_MANY = 50_000  # entries of the home that are looked at
_MIB = 1 << 20


def disk(home: Path, config: Config) -> Iterator[Check]:
    """What is under ``home``, which exists."""
    yield file_system(home, file_system_type(home))
    yield _room(home, config)
    yield _syncs(home)
    yield permissions(home)


def place(home: Path) -> Check:
    """Whether the home is there, or could be made: tried for real beside it, with a directory that is gone at once."""
    if home.is_dir():
        return fine("home", f"{home} is there")
    remedy = "set MEMORYD_HOME to a directory that this user can make"
    if os.path.lexists(home):
        return broken("home", f"{home} is in the way: it is not a directory", f"move it away, or {remedy}")
    parent = next(path for path in home.parents if os.path.lexists(path))
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=parent):
            return fine("home", f"{home} does not exist yet: it is made when something is recorded")
    except OSError as error:
        return broken("home", f"{home} cannot be made: {error.strerror}", remedy)


def file_system(home: Path, kind: str) -> Check:
    if is_remote(kind):
        said = f"{home} is on {kind}, where SQLite's write-ahead log gets corrupted"
        return broken("file-system", said, "set MEMORYD_HOME to a directory on a local disk")
    return fine("file-system", f"{home} is on {kind or 'a file system that cannot be told'}")


def _room(home: Path, config: Config) -> Check:
    free = free_bytes(home)
    given = config.store.free_floor
    floor = default_floor(shutil.disk_usage(home).total) if given == "auto" else given
    said = f"{free // _MIB} MiB are free; turns are refused below {floor // _MIB} MiB"
    remedy = "free some space on this disk, or move the home (MEMORYD_HOME)"
    if free < floor:
        return broken("disk-space", said, remedy if given == "auto" else f"{remedy}, or lower store.free_floor")
    return doubtful("disk-space", said, remedy) if free < 2 * floor else fine("disk-space", said)


def _syncs(home: Path) -> Check:
    """A file is written and synced a few times, with its name; it is gone afterwards."""
    try:
        took = _time_syncs(home)
    except OSError as error:
        remedy = "check the disk, the mount and the owner of the home; until then nothing is safe against power loss"
        return broken("fsync", f"{home} cannot be written and synced: {error.strerror}", remedy)
    said = f"a synced write takes {took:.1f} ms"
    if took > _SLOW_MS:
        return doubtful("fsync", said, "look for what keeps this disk busy, or put the home on a faster one")
    return fine("fsync", said)


def _time_syncs(home: Path) -> float:
    with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor-", buffering=0) as file:
        started = time.perf_counter()
        for _ in range(_SYNCS):
            file.write(bytes(4096))
            os.fsync(file.fileno())
        took = time.perf_counter() - started
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return took / _SYNCS * 1000


def permissions(home: Path) -> Check:
    """Modes that are wider than 0700 and 0600 are said, not changed: somebody may have wanted them."""
    foreign, open_ = [], []
    for count, path in enumerate(_everything(home)):
        if count == _MANY:
            break
        try:
            found = path.lstat()
        except OSError:  # it went away meanwhile
            continue
        if found.st_uid != os.geteuid():
            foreign.append(path)
        if found.st_mode & 0o077 and not path.is_symlink():
            open_.append(path)
    if foreign:
        said = _told(foreign, "owned by another user")
        return broken("permissions", said, f"run memoryd as their owner, or: sudo chown -R {os.geteuid()} '{home}'")
    if open_:
        said = _told(open_, "can be read by other users")
        return doubtful("permissions", said, f"chmod -R go-rwx '{home}'")
    return fine("permissions", "files and directories are private")


def _told(paths: list[Path], what: str) -> str:
    """How many files and directories, and one of them."""
    folders = sum(path.is_dir() and not path.is_symlink() for path in paths)
    counts = ((len(paths) - folders, "file", "files"), (folders, "directory", "directories"))
    named = " and ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts if count)
    return f"{named} {what}{', such as' if paths[1:] else ':'} {paths[0]}"


def _everything(home: Path) -> Iterator[Path]:
    yield home
    for folder, folders, files in os.walk(home):
        if Path(folder) == home and "plugins" in folders:
            folders.remove("plugins")  # programs, and what the interpreter keeps beside them
        yield from (Path(folder, name) for name in (*folders, *files))

