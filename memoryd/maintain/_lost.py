"""A profile whose identity or key is gone: the stores say whose they are, and digests can be made anew."""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

import attrs

from memoryd.checkpoint import Archive
from memoryd.core import Value, profile_folder
from memoryd.errors import ProfileMismatch, StoreCorrupt, StoreError
from memoryd.maintain._identity import identity_of
from memoryd.maintain._rekey import rekey_log
from memoryd.store import ProfileStore, read_identity, read_keys, write_identity, write_private

__all__ = ["Found", "find_identity", "renew_lost_key"]

_KEY_BYTES = 32
Problem = tuple[str, str, str, bool]


@attrs.frozen(slots=True, eq=False, repr=False)
class Found(Value):
    """``profile`` None where nobody can say whose the directory is.  ``key_lost``: ``profile.key`` is a new one, not written yet."""

    profile: ProfileStore | None
    key_lost: bool = False
    problems: tuple[Problem, ...] = ()


def find_identity(directory: Path, name: str, *, dry_run: bool) -> Found:
    """Read identity and key; an identity that is gone or damaged is made anew from what the stores say.

    Raises :class:`ProfileMismatch` where the directory belongs to another profile.
    """
    problems: list[Problem] = []
    try:
        stored, instance = read_identity(directory / "profile.json")
    except StoreError as error:
        stored, instance = _from_stores(directory, name)
        known = bool(instance)
        remedy = "made anew from what the stores say" if known else "no store says whose it is: restore a backup"
        problems.append(("profile.json", _cause(error), remedy, not known))
        if not known:
            return Found(None, problems=tuple(problems))
        if not dry_run:
            write_identity(directory, stored, instance)
    if stored != name:
        raise ProfileMismatch(f"{directory} belongs to another profile; copy one with `memoryd profiles copy`", path=str(directory))
    try:
        key, *earlier = read_keys(directory / "profile.key")
    except StoreCorrupt:
        remedy = "a new one; digests are made anew, what was forgotten is not known again when a host sends it"
        problems.append(("profile.key", "it is gone or damaged", remedy, True))
        return Found(ProfileStore(name, instance, directory, secrets.token_bytes(_KEY_BYTES)), True, tuple(problems))
    return Found(ProfileStore(name, instance, directory, key, tuple(earlier)), False, tuple(problems))


def _cause(error: StoreError) -> str:
    return "it is damaged" if isinstance(error, StoreCorrupt) else "it is gone"


def _from_stores(directory: Path, name: str) -> tuple[str, str]:
    """(``name``, instance) as the first readable store says; empty texts where none does.  A profile that was renamed has stores that
    still say its first name, so the folder decides."""
    for path in sorted(directory.glob("*.db")):
        with suppress(StoreError):
            _, instance = identity_of(path)
            if instance and profile_folder(name) == directory.name:
                return name, instance
    return "", ""


def renew_lost_key(profile: ProfileStore, second: Path | None) -> None:
    """Make every digest anew under the key of ``profile``, then write the key: until then it counts as lost, and this may be repeated."""
    (profile.directory / "profile.key").touch(0o600)  # the mode of what is opened
    for directory in (profile.directory, second):
        if directory is not None and (directory / "archive.db").exists():
            with Archive.open(profile, directory=directory) as archive:
                archive.rekey(profile)
    if (profile.directory / "log.db").exists():
        rekey_log(profile)
    write_private(profile.directory / "profile.key", profile.key)
