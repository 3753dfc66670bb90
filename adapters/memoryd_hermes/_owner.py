"""Whose store it is.  A store says which Hermes home it belongs to, so that a copy of a profile never serves as the original.

A home that was moved, or is seen under another path, keeps its store.  A copy is set aside, untouched, and the profile begins anew.
"""

from __future__ import annotations

import json
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

import attrs

__all__ = ["STORE", "Owned", "own_store"]

STORE = "memoryd-store"
_RECORD = "hermes.json"


@attrs.frozen(slots=True)
class Owned:
    """The store of a home.  ``note`` is what the user should know: where a copied store was put."""

    path: Path
    note: str = ""


def own_store(home: Path) -> Owned:
    """The store of the Hermes home ``home`` (its real path), marked as its own; a foreign one is set aside.  Raises :class:`OSError`."""
    store = home / STORE
    note = ""
    recorded, token = _read(store)
    if token and recorded != home:
        if _is_copy(recorded, token):
            note = _set_aside(store, recorded)
            token = ""
        else:
            _write(store, home, token)
    if not token:
        _write(store, home, secrets.token_hex(16))
    return Owned(store, note)


def _is_copy(recorded: Path, token: str) -> bool:
    """Whether the home in the record still has that very store."""
    return _read(recorded / STORE) == (recorded, token)


def _set_aside(store: Path, recorded: Path) -> str:
    aside = store.with_name(f"{STORE}.copied-{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}")
    store.rename(aside)
    return (
        f"the memory here was a copy of {recorded / STORE}; it is kept at {aside} and this profile begins with an empty one; "
        f"`memoryd --home {aside} export` reads it"
    )


def _read(store: Path) -> tuple[Path, str]:
    try:
        record = json.loads((store / _RECORD).read_bytes())
        return Path(os.path.realpath(str(record["home"]))), str(record["token"])
    except (OSError, ValueError, KeyError, TypeError):
        return Path(), ""


def _write(store: Path, home: Path, token: str) -> None:
    from memoryd.hosts import write_file  # with SQLite, which asking whether the provider is available does not pay for

    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_file(store / _RECORD, json.dumps({"home": str(home), "token": token}).encode() + b"\n")
