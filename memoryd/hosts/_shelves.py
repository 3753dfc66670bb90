"""Archives that stay open between two calls of hooks: opening one costs more than asking it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from memoryd.checkpoint import Shelf
from memoryd.store import ProfileStore

__all__ = ["Shelves"]

IDLE_S = 60.0


@attrs.define(slots=True, eq=False, repr=False)
class _Kept:
    profile: ProfileStore
    shelf: Shelf
    users: int = 0
    last: float = 0.0


class Shelves:
    """Lends the archives of profiles.  One that nobody used for a minute is closed at the next call.  Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[Path, Path | None], _Kept] = {}

    @contextmanager
    def lent(self, profile: ProfileStore, fallback_dir: Path | None) -> Iterator[Shelf]:
        """The archives of ``profile``, for the length of a block."""
        kept = self._take(profile, fallback_dir)
        try:
            yield kept.shelf
        finally:
            with self._lock:
                kept.users -= 1
                kept.last = time.monotonic()

    def _take(self, profile: ProfileStore, fallback_dir: Path | None) -> _Kept:
        place = (profile.directory, fallback_dir)
        with self._lock:
            idle = self._idle(place, profile)
            kept = self._kept.get(place)
            if kept is None:
                kept = self._kept[place] = _Kept(profile, Shelf(profile, fallback_dir=fallback_dir))
            kept.users += 1
        for one in idle:
            one.shelf.close()
        return kept

    def _idle(self, wanted: tuple[Path, Path | None], profile: ProfileStore) -> list[_Kept]:
        """Those to close: idle, or of a profile that was made anew in the same place."""
        now = time.monotonic()
        stale = [
            place
            for place, kept in self._kept.items()
            if not kept.users and (now - kept.last > IDLE_S or (place == wanted and kept.profile != profile))
        ]
        return [self._kept.pop(place) for place in stale]

    def close(self) -> None:
        with self._lock:
            kept, self._kept = list(self._kept.values()), {}
        for one in kept:
            one.shelf.close()
