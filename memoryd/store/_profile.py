"""A profile is a directory with its own files.  Its real name is inside and compared, so that no profile ever serves another."""

from __future__ import annotations

import json
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

import attrs

from memoryd.core import Value, profile_folder
from memoryd.errors import ProfileMismatch, StoreBroken, StoreCorrupt, StoreReadOnly
from memoryd.store._alone import check_attended
from memoryd.store._errors import os_errors
from memoryd.store._filesystem import require_platform
from memoryd.store._moves import finish_moves, locked_directory
from memoryd.store._sync import home_directory, private_directory, write_private

__all__ = ["ProfileStore", "open_profile", "profile_directory", "read_identity", "read_keys", "renew_key_file", "write_identity"]

KEY_BYTES = 32


@attrs.frozen(slots=True, eq=False, repr=False)
class ProfileStore(Value):
    """An opened profile.  ``instance`` is 32 hex digits made with the directory; ``key`` (32 bytes) keys every digest of the profile.

    ``earlier`` are the keys that it had before, the latest first: what they made of things that were forgotten is known by them.
    """

    name: str
    instance: str
    directory: Path
    key: bytes = attrs.field(repr=False)
    earlier: tuple[bytes, ...] = attrs.field(default=(), repr=False)


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
    root = directory.parent
    home_directory(root.parent)
    private_directory(root)
    with os_errors(directory):
        finish_moves(root)
        if not (directory / "profile.json").exists():
            _create(directory, name)
        _check_owner(directory)
        check_attended(directory)
        return _load(directory, name)


def _create(directory: Path, name: str) -> None:
    """One creator at a time, and none while profiles are moved.  The identity is written last: where it exists, the key does."""
    with locked_directory(directory.parent):
        private_directory(directory)
        _check_owner(directory)
        if (directory / "profile.json").exists():
            return
        if any(directory.glob("*.db")):
            path = str(directory / "profile.json")
            raise StoreBroken(f"{path} is gone, and stores are there; `memoryd repair` makes it anew from them", path=path)
        if not (directory / "profile.key").exists():
            write_private(directory / "profile.key", secrets.token_bytes(KEY_BYTES))
        write_identity(directory, name, secrets.token_hex(16))


def write_identity(directory: Path, name: str, instance: str) -> None:
    """Say whose directory this is."""
    record = {"name": name, "instance": instance, "created": datetime.now(UTC).isoformat()}
    write_private(directory / "profile.json", json.dumps(record).encode("ascii") + b"\n")


def _load(directory: Path, name: str) -> ProfileStore:
    stored, instance = read_identity(directory / "profile.json")
    if stored != name:
        raise ProfileMismatch(f"{directory} belongs to another profile; copy one with `memoryd profiles copy`", path=str(directory))
    key, *earlier = read_keys(directory / "profile.key")
    return ProfileStore(name, instance, directory, key, tuple(earlier))


def read_identity(path: Path) -> tuple[str, str]:
    """Name and instance, from the ``profile.json`` at ``path``."""
    with os_errors(path):
        data = path.read_bytes()
    try:
        record = json.loads(data)
        name, instance = record["name"], record["instance"]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreCorrupt(f"{path} is damaged; `memoryd repair` makes it anew from the stores", path=str(path)) from error
    if not isinstance(name, str) or not isinstance(instance, str):
        raise StoreCorrupt(f"{path} is damaged; `memoryd repair` makes it anew from the stores", path=str(path))
    return name, instance


def read_keys(path: Path) -> list[bytes]:
    """The profile's key and those before it, from the ``profile.key`` at ``path``."""
    with os_errors(path):
        keys = path.read_bytes() if path.exists() else b""
    if not keys or len(keys) % KEY_BYTES:
        problem = "is missing or damaged; without it no digest can be checked: restore it from a backup, or `memoryd repair`"
        raise StoreCorrupt(f"{path} {problem}", path=str(path))
    return [keys[start : start + KEY_BYTES] for start in range(0, len(keys), KEY_BYTES)]


def renew_key_file(profile: ProfileStore) -> None:
    """A new key for the profile; the earlier ones stay known."""
    write_private(profile.directory / "profile.key", b"".join((secrets.token_bytes(KEY_BYTES), profile.key, *profile.earlier)))


def _check_owner(directory: Path) -> None:
    owner = os.stat(directory).st_uid
    if owner != os.geteuid():
        raise StoreReadOnly(
            f"{directory} belongs to user id {owner}, this process runs as {os.geteuid()}; run as its owner, or set MEMORYD_HOME",
            path=str(directory),
        )
