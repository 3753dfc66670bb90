"""A profile is a directory with its own files.  Its real name is inside and compared, so that no profile ever serves another."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import attrs

from memoryd.core import Value, profile_folder
from memoryd.errors import ProfileMismatch, StoreCorrupt, StoreLocked, StoreReadOnly
from memoryd.store._errors import os_errors
from memoryd.store._filesystem import require_platform
from memoryd.store._sync import private_directory, write_private

__all__ = ["ProfileStore", "open_profile", "profile_directory"]

KEY_BYTES = 32
CREATION_SECONDS = 5.0


@attrs.frozen(slots=True, eq=False, repr=False)
class ProfileStore(Value):
    """An opened profile.  ``instance`` is 32 hex digits made with the directory; ``key`` (32 bytes) keys every digest of the profile."""

    name: str
    instance: str
    directory: Path
    key: bytes = attrs.field(repr=False)


def profile_directory(home: Path, name: str) -> Path:
    """Where the profile ``name`` lives below ``home``."""
    return home / "profiles" / profile_folder(name)


def open_profile(home: Path, name: str) -> ProfileStore:
    """The profile ``name`` under ``home``, created where it is missing; safe when several processes do so at once.

    Raises :class:`~memoryd.errors.ProfileMismatch` where the directory belongs to another name, and
    :class:`~memoryd.errors.StoreReadOnly`, ``StoreFull``, ``StoreCorrupt`` or ``StoreBroken`` with the path and what to do.
    """
    require_platform()
    directory = profile_directory(home, name).absolute()
    private_directory(directory)
    with os_errors(directory):
        _check_owner(directory)
        identity = directory / "profile.json"
        if not identity.exists():
            with _creation_lock(directory):
                if not identity.exists():
                    _create(directory, name)
        return _load(directory, name)


def _create(directory: Path, name: str) -> None:
    """The identity is written last: where it exists, the key does."""
    key = directory / "profile.key"
    if not key.exists():
        write_private(key, secrets.token_bytes(KEY_BYTES))
    record = {"name": name, "instance": secrets.token_hex(16), "created": datetime.now(UTC).isoformat()}
    write_private(directory / "profile.json", json.dumps(record).encode("ascii") + b"\n")


def _load(directory: Path, name: str) -> ProfileStore:
    stored, instance = _read_identity(directory / "profile.json")
    if stored != name:
        raise ProfileMismatch(f"{directory} belongs to another profile; do not copy profile directories by hand", path=str(directory))
    return ProfileStore(name, instance, directory, _read_key(directory / "profile.key"))


def _read_identity(path: Path) -> tuple[str, str]:
    with os_errors(path):
        data = path.read_bytes()
    try:
        record = json.loads(data)
        name, instance = record["name"], record["instance"]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreCorrupt(f"{path} is damaged; restore it from a backup of the profile", path=str(path)) from error
    if not isinstance(name, str) or not isinstance(instance, str):
        raise StoreCorrupt(f"{path} is damaged; restore it from a backup of the profile", path=str(path))
    return name, instance


def _read_key(path: Path) -> bytes:
    with os_errors(path):
        key = path.read_bytes() if path.exists() else b""
    if len(key) != KEY_BYTES:
        raise StoreCorrupt(f"{path} is missing or damaged; without it no digest can be checked: restore it from a backup", path=str(path))
    return key


def _check_owner(directory: Path) -> None:
    owner = os.stat(directory).st_uid
    if owner != os.geteuid():
        raise StoreReadOnly(
            f"{directory} belongs to user id {owner}, this process runs as {os.geteuid()}; run as its owner, or set MEMORYD_HOME",
            path=str(directory),
        )


@contextmanager
def _creation_lock(directory: Path) -> Iterator[None]:
    """One creator at a time, by flock on the directory itself, which needs no file and ends with its process."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + CREATION_SECONDS
        while not _try_flock(fd):
            if time.monotonic() >= until:
                raise StoreLocked(f"{directory} is being created by another process that does not finish", path=str(directory))
            time.sleep(0.005)
        yield
    finally:
        os.close(fd)


def _try_flock(fd: int) -> bool:
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
