"""What each route of the stand-in does.  Values in, answer out: no sockets here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from memoryd.testing.honcho._filters import BadFilter, FilterFault, check, matches
from memoryd.testing.honcho._store import Refused, Space, Store, Thing, newest_first, rank

__all__ = ["Api", "Call", "Modes"]

_BARRED = ("<|endoftext|>", "<|endofprompt|>")
_FATAL = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")


@attrs.define(slots=True)
class Modes:
    """How the server is now; may be changed at any time.

    ``database`` False: everything is answered with 500.  ``embeddings`` False: what needs them is.  ``worker`` False: nothing is
    derived, and deleted sessions are erased only by :meth:`HonchoServer.erase_deleted`.  ``latency``: seconds before every answer.
    ``api_key``: what requests have to bring, if anything.  ``refused``: contents of messages that are always answered with a status, 422
    or 500.
    """

    database: bool = True
    embeddings: bool = True
    worker: bool = True
    latency: float = 0.0
    api_key: str | None = None
    refused: dict[str, int] = attrs.field(factory=dict)


@attrs.frozen(slots=True)
class Call:
    """A request that was checked: what its path names, its query, its body."""

    named: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def workspace(self) -> str:
        return self.named["workspace_id"]

    @property
    def filters(self) -> Mapping[str, Any] | None:
        return self.body.get("filters")


class Api:
    """The routes by the name that the table gives them."""

    def __init__(self, store: Store, modes: Modes) -> None:
        self._store = store
        self._modes = modes

    def answer(self, does: str, call: Call) -> Any:
        """What the route ``does``; raises :class:`Refused`."""
        work: Callable[[Call], Any] = getattr(self, does)
        try:
            return work(call)
        except BadFilter as error:
            raise Refused(422, f"Invalid filter: {error}") from None
        except FilterFault:
            raise Refused(500, "Internal server error") from None

    def health(self, call: Call) -> Thing:
        """Shallow: it says ok without a database."""
        return {"status": "ok"}

    # -- workspaces and peers -----------------------------------------------------------------------------------------------

    def make_workspace(self, call: Call) -> Thing:
        return _changed(self._store.space(call.body["id"]).thing, call.body)

    def list_workspaces(self, call: Call) -> Thing:
        return _page("Workspace", (space.thing for space in self._store.spaces.values()), call)

    def change_workspace(self, call: Call) -> Thing:
        return _changed(self._store.space(call.workspace).thing, call.body)

    def queue_status(self, call: Call) -> Thing:
        jobs = len(self._space(call).jobs)
        done = jobs if self._modes.worker else 0
        return {"total_work_units": jobs, "completed_work_units": done, "in_progress_work_units": 0, "pending_work_units": jobs - done}

    def make_peer(self, call: Call) -> Thing:
        return _changed(self._store.peer(call.workspace, call.body["id"]), call.body)

    def list_peers(self, call: Call) -> Thing:
        return _page("Peer", self._space(call).peers.values(), call)

    def change_peer(self, call: Call) -> Thing:
        return _changed(self._store.peer(call.workspace, call.named["peer_id"]), call.body)

    def card(self, call: Call) -> Thing:
        if call.named["peer_id"] not in self._space(call).peers:
            raise Refused(404, "Peer not found")
        return {"peer_card": self._space(call).cards.get(call.named["peer_id"])}

    def set_card(self, call: Call) -> Thing:
        self._store.peer(call.workspace, call.named["peer_id"])
        self._space(call).cards[call.named["peer_id"]] = list(call.body["peer_card"])
        return {"peer_card": list(call.body["peer_card"])}

    # -- sessions ---------------------------------------------------------------------------------------------------------------

    def make_session(self, call: Call) -> Thing:
        return _changed(self._store.session(call.workspace, call.body["id"]), call.body)

    def list_sessions(self, call: Call) -> Thing:
        return _page("Session", (s for s in self._space(call).sessions.values() if s["is_active"]), call)

    def change_session(self, call: Call) -> Thing:
        return _changed(self._store.session(call.workspace, call.named["session_id"]), call.body)

    def delete_session(self, call: Call) -> Thing:
        """Accepted at once; the messages stay readable until the worker comes by."""
        space, session = self._space(call), call.named["session_id"]
        if session not in space.sessions or session in space.ending:
            raise Refused(404, "Session not found")
        space.sessions[session]["is_active"] = False
        space.ending.append(session)
        return {"message": "Session deletion accepted"}

    def summaries(self, call: Call) -> Thing:
        session = call.named["session_id"]
        return {"id": session, "short_summary": self._space(call).summaries.get(session), "long_summary": None}

    # -- messages ---------------------------------------------------------------------------------------------------------------

    def add_messages(self, call: Call) -> list[Thing]:
        for message in call.body["messages"]:
            self._check_content(message["content"])
        return self._store.add_messages(call.workspace, call.named["session_id"], call.body["messages"])

    def list_messages(self, call: Call) -> Thing:
        return _page("Message", self._space(call).messages.get(call.named["session_id"], ()), call)

    def message(self, call: Call) -> Thing:
        for message in self._space(call).messages.get(call.named["session_id"], ()):
            if message["id"] == call.named["message_id"]:
                return message
        raise Refused(404, "Message not found")

    def change_message(self, call: Call) -> Thing:
        """Metadata is replaced whole, also by nothing; the content never changes."""
        message = self.message(call)
        message["metadata"] = call.body.get("metadata") or {}
        return message

    def search(self, call: Call) -> list[Thing]:
        return self._found("Message", self._space(call).all_messages(), call)

    def search_session(self, call: Call) -> list[Thing]:
        return self._found("Message", self._space(call).messages.get(call.named["session_id"], ()), call)

    def search_peer(self, call: Call) -> list[Thing]:
        own = [message for message in self._space(call).all_messages() if message["peer_id"] == call.named["peer_id"]]
        return self._found("Message", own, call)

    def _check_content(self, content: str) -> None:
        _check_tokens(content)
        status = self._modes.refused.get(content)
        if status is not None:
            detail = {"loc": ["body", "messages"], "msg": "refused", "type": "value_error", "input": content}
            raise Refused(status, [detail] if status == 422 else "Internal server error")

    # -- conclusions ------------------------------------------------------------------------------------------------------------

    def conclude(self, call: Call) -> list[Thing]:
        self._need_embeddings()
        for conclusion in call.body["conclusions"]:
            _check_tokens(conclusion["content"])
        made = [self._store.conclude(conclusion) for conclusion in call.body["conclusions"]]
        self._space(call).conclusions.update((conclusion["id"], conclusion) for conclusion in made)
        return made

    def list_conclusions(self, call: Call) -> Thing:
        return _page("Conclusion", newest_first(self._space(call).conclusions.values()), call)

    def find_conclusions(self, call: Call) -> list[Thing]:
        return self._found("Conclusion", list(self._space(call).conclusions.values()), call, call.body.get("top_k", 10))

    def drop_conclusion(self, call: Call) -> None:
        if self._space(call).conclusions.pop(call.named["conclusion_id"], None) is None:
            raise Refused(404, "Conclusion not found")

    # -- how it works -----------------------------------------------------------------------------------------------------------

    def _space(self, call: Call) -> Space:
        """Reading a workspace that is not there makes none."""
        return self._store.spaces.get(call.workspace) or Space({})

    def _need_embeddings(self) -> None:
        if not self._modes.embeddings:
            raise Refused(500, "Internal server error")

    def _found(self, kind: str, things: Sequence[Thing], call: Call, limit: int | None = None) -> list[Thing]:
        self._need_embeddings()
        if any(token in call.body["query"] for token in (*_BARRED, *_FATAL)):
            raise Refused(422, "Query exceeds maximum token limit")
        meant = _meant(kind, things, call)
        return rank(call.body["query"], meant, limit or call.body.get("limit", 10))


def _check_tokens(content: str) -> None:
    """Words that the server's tokenizer takes for its own."""
    if any(token in content for token in _BARRED):
        raise Refused(422, [{"loc": ["body", "content"], "msg": "special token", "type": "value_error", "input": content}])
    if any(token in content for token in _FATAL):
        raise Refused(500, "Internal server error")


def _changed(thing: Thing, body: Mapping[str, Any]) -> Thing:
    """Metadata is replaced, a configuration merged; what is not given stays."""
    if body.get("metadata") is not None:
        thing["metadata"] = dict(body["metadata"])
    if body.get("configuration") is not None:
        thing["configuration"].update(body["configuration"])
    return thing


def _meant(kind: str, things: Iterable[Thing], call: Call) -> list[Thing]:
    check(kind, call.filters)
    return [thing for thing in things if matches(thing, call.filters)]


def _page(kind: str, things: Iterable[Thing], call: Call) -> Thing:
    meant = _meant(kind, things, call)
    if call.query.get("reverse") == "true":
        meant.reverse()
    page, size = int(call.query.get("page", 1)), int(call.query.get("size", 50))
    if not 1 <= size <= 100 or page < 1:
        raise Refused(422, "page and size")
    start = (page - 1) * size
    return {"items": meant[start : start + size], "total": len(meant), "page": page, "size": size, "pages": -(-len(meant) // size)}
