"""What the stand-in keeps: workspaces, peers, sessions, messages and conclusions, as Honcho's answers show them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import attrs

__all__ = ["Refused", "Space", "Store", "newest_first", "rank"]

Thing = dict[str, Any]
_FLAT = 60


class Refused(Exception):
    """The request is answered with this status."""

    def __init__(self, status: int, detail: Any) -> None:
        super().__init__(status)
        self.status = status
        self.detail = detail


@attrs.define(slots=True)
class Space:
    """One workspace.  Messages of a session are in the order of arrival; ``ending`` sessions were deleted and not erased yet."""

    thing: Thing
    peers: dict[str, Thing] = attrs.field(factory=dict)
    sessions: dict[str, Thing] = attrs.field(factory=dict)
    messages: dict[str, list[Thing]] = attrs.field(factory=dict)
    conclusions: dict[str, Thing] = attrs.field(factory=dict)
    cards: dict[str, list[str]] = attrs.field(factory=dict)
    summaries: dict[str, Thing] = attrs.field(factory=dict)
    ending: list[str] = attrs.field(factory=list)
    jobs: list[str] = attrs.field(factory=list)

    def all_messages(self) -> list[Thing]:
        return [message for messages in self.messages.values() for message in messages]


class Store:
    """The database of the stand-in."""

    def __init__(self) -> None:
        self.spaces: dict[str, Space] = {}

    def space(self, id: str) -> Space:
        """The workspace, made where it is not there."""
        if id not in self.spaces:
            self.spaces[id] = Space({"id": id, "metadata": {}, "configuration": {}, "created_at": now()})
        return self.spaces[id]

    def peer(self, workspace: str, id: str, configuration: Mapping[str, Any] | None = None) -> Thing:
        space = self.space(workspace)
        peer = space.peers.setdefault(id, made(workspace, id))
        peer["configuration"].update(configuration or {})
        return peer

    def session(self, workspace: str, id: str) -> Thing:
        """The session, made where it is not there; one that was deleted cannot be used before it is erased."""
        space = self.space(workspace)
        if id in space.ending:
            raise Refused(404, "Session not found")
        return space.sessions.setdefault(id, {**made(workspace, id), "is_active": True})

    def add_messages(self, workspace: str, session: str, given: Sequence[Mapping[str, Any]]) -> list[Thing]:
        """Keep messages, one transaction: their peers and their session come with them."""
        self.session(workspace, session)
        space = self.space(workspace)
        kept = [self._message(workspace, session, message) for message in given]
        space.messages.setdefault(session, []).extend(kept)
        space.jobs += [message["peer_id"] for message in kept if self._is_observed(workspace, message["peer_id"])]
        return kept

    def _message(self, workspace: str, session: str, given: Mapping[str, Any]) -> Thing:
        self.peer(workspace, given["peer_id"])
        return {
            "id": nano_id(), "workspace_id": workspace, "session_id": session, "peer_id": given["peer_id"],
            "content": given["content"].replace("\0", ""), "metadata": given.get("metadata") or {},
            "created_at": given.get("created_at") or now(), "token_count": len(given["content"]) // 4,
        }  # fmt: skip

    def _is_observed(self, workspace: str, peer: str) -> bool:
        return self.space(workspace).peers[peer]["configuration"].get("observe_me") is not False

    def conclude(self, given: Mapping[str, Any]) -> Thing:
        return {**given, "id": nano_id(), "level": "explicit", "created_at": now(), "session_id": given.get("session_id")}

    def erase_ended(self) -> None:
        """What the server's worker does some time after a deletion: messages and conclusions of ended sessions go."""
        for space in self.spaces.values():
            for session in space.ending:
                space.messages.pop(session, None)
                space.sessions.pop(session, None)
                space.conclusions = {id: c for id, c in space.conclusions.items() if c["session_id"] != session}
            space.ending.clear()


def made(workspace: str, id: str) -> Thing:
    return {"id": id, "workspace_id": workspace, "metadata": {}, "configuration": {}, "created_at": now()}


def now() -> str:
    return datetime.now(UTC).isoformat()


def nano_id() -> str:
    return secrets.token_urlsafe(16)[:21]


def newest_first(things: Iterable[Thing]) -> list[Thing]:
    return list(reversed(list(things)))


# -- search -----------------------------------------------------------------------------------------------------------------


def rank(query: str, things: Sequence[Thing], limit: int) -> list[Thing]:
    """The first ``limit`` by words and by nearness, the two rankings joined.  There is no cut-off: the nearest are given, however far."""
    wanted = words(query)
    by_words = sorted((t for t in things if wanted & words(t["content"])), key=lambda t: -len(wanted & words(t["content"])))
    grams = _grams(query)
    near = sorted(things, key=lambda t: -_nearness(grams, _grams(t["content"])))
    score: dict[str, float] = {}
    for ranking in (by_words, near):
        for place, thing in enumerate(ranking):
            score[thing["id"]] = score.get(thing["id"], 0.0) + 1 / (_FLAT + place)
    return sorted(things, key=lambda thing: -score[thing["id"]])[:limit]


@lru_cache(4096)
def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))


@lru_cache(4096)
def _grams(text: str) -> frozenset[str]:
    """Three letters in a row: a poor man's meaning."""
    folded = f" {text[:4000].casefold()} "
    return frozenset(folded[at : at + 3] for at in range(len(folded) - 2))


def _nearness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)
