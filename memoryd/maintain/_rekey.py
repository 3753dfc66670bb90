"""A profile in the making gets a new key: every digest that the old one made is made anew."""

from __future__ import annotations

from pathlib import Path

from memoryd.checkpoint import Archive
from memoryd.core import Turn, decode_event, retired
from memoryd.errors import StoreCorrupt
from memoryd.maintain._identity import SQL, staged
from memoryd.runtime import turn_key
from memoryd.store import Connection, ProfileStore, open_profile, renew_key_file

__all__ = ["rekey_log", "renew_key"]

_PAGE = 2048


def renew_key(home: Path, name: str, second: Path | None = None) -> ProfileStore:
    """Renew the key of the profile ``name`` below the staging home ``home``; ``second`` is as ``gate.fallback_dir`` names it.

    A crash leaves a profile of no use: what is in the making is made again.
    """
    old = open_profile(home, name)
    renew_key_file(old)
    new = open_profile(home, name)
    for directory in (old.directory, *((second / old.directory.name,) if second is not None else ())):
        if (directory / "archive.db").exists():
            with Archive.open(old, directory=directory) as archive:
                archive.rekey(new)
    if (old.directory / "log.db").exists():
        rekey_log(new)
    return new


def rekey_log(profile: ProfileStore) -> None:
    """Every digest in the profile's log under its key, in one transaction."""
    with staged(profile.directory / "log.db") as log, log.transaction():
        _turn_keys(log, profile)
        _session_keys(log, profile)


def _turn_keys(log: Connection, new: ProfileStore) -> None:
    after = 0
    while rows := log.all(SQL["turn_keys"], (after, _PAGE)):
        log.executemany(SQL["set_turn_key"], [(_turn_key(new, *row), row[0]) for row in rows])
        after = rows[-1][0]


def _turn_key(new: ProfileStore, seq: int, event_id: bytes, at: int, kind: int, payload: bytes | None, old: bytes) -> bytes:
    """A turn that was forgotten has no ``turn_id`` any more: what stood for it is retired."""
    try:
        event = decode_event(event_id, at, kind, payload)
    except StoreCorrupt:
        return retired(new.key, old)
    if not isinstance(event, Turn) or event.turn_id is None:
        return retired(new.key, old)
    return turn_key(new.key, event.scope, event.turn_id)


def _session_keys(log: Connection, new: ProfileStore) -> None:
    """A private session has no event that says its name, so all of them are retired."""
    rows = log.all(SQL["session_keys"])
    log.executemany(SQL["set_session_key"], [(retired(new.key, key), key) for (key,) in rows])
