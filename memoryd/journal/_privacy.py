"""Whether a session is private: settled by its first call and remembered under a keyed hash, across processes and restarts."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.core import keyed, retired_forms
from memoryd.errors import ScopeConflict, StoreError
from memoryd.journal._journal import SQL, Journal

__all__ = ["Privacy"]

_CACHE = 10_000


class Privacy:
    """``settle`` answers the session's value and raises :class:`ScopeConflict` where a call says another."""

    def __init__(self, key: bytes, earlier: Sequence[bytes] = ()) -> None:
        self._journal: Journal | None = None
        self._key = key
        self._earlier = earlier
        self._known: dict[tuple[str, str], bool] = {}
        self._unwritten: dict[tuple[str, str], bool] = {}

    def adopt(self, journal: Journal) -> None:
        """Remember in ``journal`` from now on; without one a value holds in this process only."""
        self._journal = journal
        self._unwritten.update(self._known)

    def settle(self, user: str, session: str, private: bool | None, default: bool) -> bool:
        """The value that holds for the session; ``private`` None takes the session's, else ``default``."""
        known = self._known.get((user, session))
        if known is None:
            known = self._first_sight(user, session, default if private is None else private)
        if private is not None and private is not known:
            raise ScopeConflict(
                f"this session is {'private' if known else 'not private'}; begin a new session to change that"
            )
        return known

    def _first_sight(self, user: str, session: str, private: bool) -> bool:
        if len(self._known) >= _CACHE:
            self._known.clear()
        value = private
        if self._journal is not None:
            value = self._stored(user, session, private)
        self._known[user, session] = value
        return value

    def _stored(self, user: str, session: str, private: bool) -> bool:
        assert self._journal is not None
        names = self._names(user, session)
        with self._journal.lock:
            connection = self._journal.connection
            try:
                row = next((row for name in names if (row := connection.one(SQL["privacy"], (name,))) is not None), None)
                if row is None:
                    connection.run(SQL["settle_privacy"], (names[0], int(private)))
            except StoreError:  # locked or full: the value holds in this process, and is written at the next chance
                self._unwritten[user, session] = private
                return private
        return private if row is None else bool(row[0])

    def _names(self, user: str, session: str) -> list[bytes]:
        """What stands for the session, first as it is written now, then as it may have been before the key was renewed."""

        def name(key: bytes) -> bytes:
            return keyed(key, "session", _bytes(user), _bytes(session))

        return [name(self._key), *retired_forms(self._key, self._earlier, name)]

    def write_pending(self) -> None:
        """Write what could not be written at first sight; a store error leaves it pending."""
        for user, session in list(self._unwritten):
            private = self._unwritten.pop((user, session))
            self._stored(user, session, private)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
