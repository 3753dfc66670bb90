"""``memoryd import hermes``: the conversations of a Hermes home, from its ``state.db``, as turns with their times.

People, places and sessions are those under which the provider would have recorded them.  A turn is known by its session, its words and
its number among equal ones, as the provider knows it, so that what either has recorded the other does not record again.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from memoryd.core import Scope, Turn
from memoryd.errors import InvalidInput
from memoryd.hosts import import_id
from memoryd_hermes._history_db import HistoryFile, open_history
from memoryd_hermes._history_rows import Exchange, Row, exchanges, read_row, said_once
from memoryd_hermes._identity import fitting_name, identity_of
from memoryd_hermes._ledger import Ledgers
from memoryd_hermes._places import store_home
from memoryd_hermes._settings import Settings, read_settings

__all__ = ["history_source"]

_NAME = "hermes"
_FILE = "state.db"
_STILL_TALKING = 3600.0  # seconds in which an answer may still come
_INHERITED = ("user_id", "session_key", "chat_id", "chat_type", "thread_id", "profile_name", "cwd")
_AUTOMATION = ("cron", "subagent")


class HermesHistory:
    """The object behind the entry point ``hermes`` of ``memoryd.sources``."""

    help = "conversations of Hermes: a Hermes home, or its state.db"

    def events(self, path: Path) -> Iterator[Turn]:
        """Every turn once, session by session, the oldest first.  Raises :class:`InvalidInput` where there is no ``state.db``, and
        :class:`~memoryd.errors.ConfigError` for settings of that home that cannot be read."""
        file = path / _FILE if path.is_dir() else path
        if not file.is_file():
            raise InvalidInput("PATH", f"{path}: there is no {_FILE}")
        settings = read_settings(file.parent)
        digest = _provider_digest(store_home(file.parent, settings))
        with open_history(file) as history:
            for session, told in _told(history):
                scope = _scope(session, settings)
                if scope is not None:
                    yield from _turns(session, scope, told, digest)


history_source = HermesHistory()


def _provider_digest(store: Path) -> Callable[[str], str] | None:
    """How the provider names a text in ``store``; None where there is no store that it could record into."""
    return Ledgers(store / "hermes").of("").digest if store.is_dir() else None


def _told(history: HistoryFile) -> Iterator[tuple[dict[str, Any], list[Exchange]]]:
    """Each session with what was said in it first; only what a later one may repeat is kept in memory."""
    sessions = history.sessions()
    parents = {session["parent_session_id"] for session in sessions}
    known: dict[object, dict[str, Any]] = {}
    lines: dict[object, list[Row]] = {}
    for session in sessions:
        parent = session["parent_session_id"]
        marks = _marks(session)
        session["delegated"] = bool(parent) and marks.get("_delegate_from") == parent
        for name in _INHERITED:
            session[name] = session[name] or known.get(parent, {}).get(name)
        known[session["id"]] = session
        fork = session["delegated"] or marks.get("_reset_from") == parent
        rows = map(read_row, history.rows(session["id"]))
        fresh, live = said_once(rows, () if fork else lines.get(parent, ()), branch=marks.get("_branched_from") == parent)
        if session["id"] in parents:
            lines[session["id"]] = live
        yield session, exchanges(fresh)


def _marks(session: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        found = json.loads(session["model_config"] or "{}")
    except (TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _scope(session: Mapping[str, Any], settings: Settings) -> Scope | None:
    """The scope that the provider would record under; None where it would not.

    A chat of several people does not say who said what.
    """
    source = fitting_name(str(session["source"] or "cli"))
    context = "subagent" if session["delegated"] else source if source in _AUTOMATION else ""
    if not session["id"] or (context and settings.automation == "off") or _is_shared(session):
        return None
    given = {
        "platform": source, "user_id": session["user_id"], "agent_context": context, "gateway_session_key": session["session_key"],
        "agent_identity": fitting_name(str(session["profile_name"] or "")),
    }  # fmt: skip
    identity = identity_of(settings, given, str(session["cwd"] or ""))
    scope = identity.writing(fitting_name(str(session["id"])))
    if identity.named or settings.user != Settings().user:
        return scope
    return attrs.evolve(scope, user=scope.need_user().removeprefix(settings.user) or None)


def _is_shared(session: Mapping[str, Any]) -> bool:
    """Whether the host has one session for all who speak in a chat: its key ends with the chat, not with a person."""
    key, places = str(session["session_key"] or ""), (session["chat_id"], session["thread_id"])
    return session["chat_type"] not in (None, "", "dm") and any(place and key.endswith(f":{place}") for place in places)


def _turns(
    session: Mapping[str, Any], scope: Scope, told: list[Exchange], digest: Callable[[str], str] | None
) -> Iterator[Turn]:
    at = _seconds(session["started_at"])
    numbers = Counter[str]()
    for place, one in enumerate(told):
        at = one.at if one.at is not None else at
        number = numbers[one.told]
        numbers[one.told] += 1
        if one.open and place == len(told) - 1 and session["ended_at"] is None and at > time.time() - _STILL_TALKING:
            return
        key = None if digest is None else f"{digest(one.told)}:{number}"
        identity = import_id(_NAME, str(session["id"]), one.told, str(number))
        yield Turn(identity, scope, int(at * 1_000_000), one.user, one.assistant, key)


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e11 else 0.0
