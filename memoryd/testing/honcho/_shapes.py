"""Honcho's API as far as the stand-in speaks it: routes, what their bodies must be, what their answers hold.

Written down from the public description of version 3 of the API; a test compares it with that description where it is at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

import attrs

__all__ = ["ABSENT", "ANSWERS", "BODIES", "ROUTES", "Field", "Problem", "Route", "problems", "route_of"]

Kind = Literal["text", "whole", "number", "object", "list", "time", "id"]
ID = r"^[a-zA-Z0-9_-]+$"


@attrs.frozen(slots=True)
class Field:
    """One field of a body: ``least`` and ``most`` are lengths or values; ``of`` is the shape of a list's items or of an object."""

    kind: Kind
    required: bool = False
    least: int | None = None
    most: int | None = None
    of: str = ""


@attrs.frozen(slots=True)
class Problem:
    """What is wrong with a body, as the server says it: the offending input is part of its answer."""

    place: tuple[str | int, ...]
    type: str
    input: Any = attrs.field(repr=False)

    def said(self) -> dict[str, Any]:
        return {"loc": ["body", *self.place], "msg": self.type.replace("_", " "), "type": self.type, "input": self.input}


_FILTERED = {"filters": Field("object")}
_FOUND = {"query": Field("text", required=True), "filters": Field("object"), "limit": Field("whole", least=1, most=100)}
_NAMED = {"id": Field("id", required=True, least=1, most=512), "metadata": Field("object")}
_CHANGED = {"metadata": Field("object"), "configuration": Field("object")}

BODIES: Mapping[str, Mapping[str, Field]] = {
    "WorkspaceCreate": {**_NAMED, "configuration": Field("object")},
    "WorkspaceUpdate": _CHANGED,
    "WorkspaceGet": _FILTERED,
    "PeerCreate": {**_NAMED, "configuration": Field("object")},
    "PeerUpdate": _CHANGED,
    "PeerGet": {**_FILTERED, "kind": Field("text")},
    "PeerCardSet": {"peer_card": Field("list", required=True)},
    "SessionCreate": {
        **_NAMED, "configuration": Field("object"), "peers": Field("object"), "scopes": Field("list", most=100),
    },
    "SessionUpdate": _CHANGED,
    "SessionGet": _FILTERED,
    "MessageCreate": {
        "content": Field("text", required=True, least=0, most=25_000), "peer_id": Field("text", required=True),
        "metadata": Field("object"), "created_at": Field("time"), "configuration": Field("object"),
    },
    "MessageBatchCreate": {"messages": Field("list", required=True, least=1, most=100, of="MessageCreate")},
    "MessageGet": _FILTERED,
    "MessageUpdate": {"metadata": Field("object")},
    "MessageSearchOptions": _FOUND,
    "WorkspaceMessageSearchOptions": {**_FOUND, "scope": Field("text")},
    "ConclusionCreate": {
        "content": Field("text", required=True, least=1, most=65_535), "observer_id": Field("text", required=True),
        "observed_id": Field("text", required=True), "session_id": Field("text"),
    },
    "ConclusionBatchCreate": {"conclusions": Field("list", required=True, least=1, most=100, of="ConclusionCreate")},
    "ConclusionGet": _FILTERED,
    "ConclusionQuery": {
        "query": Field("text", required=True), "top_k": Field("whole", least=1, most=100), "filters": Field("object"),
        "distance": Field("number", least=0, most=1),
    },
}  # fmt: skip

_THING = ("id", "workspace_id", "created_at")
ANSWERS: Mapping[str, tuple[str, ...]] = {
    "Workspace": ("id", "created_at"),
    "Peer": _THING,
    "Session": (*_THING, "is_active"),
    "Message": (*_THING, "content", "peer_id", "session_id", "token_count"),
    "Conclusion": ("id", "content", "observer_id", "observed_id", "created_at"),
    "PeerCardResponse": (),
    "SessionSummaries": ("id",),
    "QueueStatus": ("total_work_units", "completed_work_units", "in_progress_work_units", "pending_work_units"),
}
"""The fields that every answer of a kind has."""


@attrs.frozen(slots=True)
class Route:
    """``answer`` is the kind of the answer; ``Page`` before it: one page of them; ``List`` before it: all of them."""

    method: str
    path: str
    does: str
    body: str = ""
    answer: str = ""
    status: int = 200

    def match(self, path: str) -> dict[str, str] | None:
        found = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", self.path), path)
        return None if found is None else found.groupdict()


_WORKSPACE = "/v3/workspaces/{workspace_id}"
_PEER = _WORKSPACE + "/peers/{peer_id}"
_SESSION = _WORKSPACE + "/sessions/{session_id}"
_MESSAGE = _SESSION + "/messages/{message_id}"

ROUTES: tuple[Route, ...] = (
    Route("GET", "/health", "health"),
    Route("POST", "/v3/workspaces", "make_workspace", "WorkspaceCreate", "Workspace"),
    Route("POST", "/v3/workspaces/list", "list_workspaces", "WorkspaceGet", "Page Workspace"),
    Route("PUT", _WORKSPACE, "change_workspace", "WorkspaceUpdate", "Workspace"),
    Route("GET", _WORKSPACE + "/queue/status", "queue_status", answer="QueueStatus"),
    Route("POST", _WORKSPACE + "/search", "search", "WorkspaceMessageSearchOptions", "List Message"),
    Route("POST", _WORKSPACE + "/peers", "make_peer", "PeerCreate", "Peer"),
    Route("POST", _WORKSPACE + "/peers/list", "list_peers", "PeerGet", "Page Peer"),
    Route("PUT", _PEER, "change_peer", "PeerUpdate", "Peer"),
    Route("GET", _PEER + "/card", "card", answer="PeerCardResponse"),
    Route("PUT", _PEER + "/card", "set_card", "PeerCardSet", "PeerCardResponse"),
    Route("POST", _PEER + "/search", "search_peer", "MessageSearchOptions", "List Message"),
    Route("POST", _WORKSPACE + "/sessions", "make_session", "SessionCreate", "Session"),
    Route("POST", _WORKSPACE + "/sessions/list", "list_sessions", "SessionGet", "Page Session"),
    Route("PUT", _SESSION, "change_session", "SessionUpdate", "Session"),
    Route("DELETE", _SESSION, "delete_session", status=202),
    Route("GET", _SESSION + "/summaries", "summaries", answer="SessionSummaries"),
    Route("POST", _SESSION + "/search", "search_session", "MessageSearchOptions", "List Message"),
    Route("POST", _SESSION + "/messages", "add_messages", "MessageBatchCreate", "List Message", 201),
    Route("POST", _SESSION + "/messages/list", "list_messages", "MessageGet", "Page Message"),
    Route("GET", _MESSAGE, "message", answer="Message"),
    Route("PUT", _MESSAGE, "change_message", "MessageUpdate", "Message"),
    Route("POST", _WORKSPACE + "/conclusions", "conclude", "ConclusionBatchCreate", "List Conclusion", 201),
    Route("POST", _WORKSPACE + "/conclusions/list", "list_conclusions", "ConclusionGet", "Page Conclusion"),
    Route("POST", _WORKSPACE + "/conclusions/query", "find_conclusions", "ConclusionQuery", "List Conclusion"),
    Route("DELETE", _WORKSPACE + "/conclusions/{conclusion_id}", "drop_conclusion", status=204),
)

ABSENT = re.compile(
    r"/v3/(keys|workspaces/[^/]+(|/(schedule_dream|scopes|webhooks)(/.*)?"
    r"|/peers/[^/]+/(chat|context|representation|sessions)"
    r"|/sessions/[^/]+/(clone|context|peers(/.*)?|messages/upload)))"
)
"""Paths of the API that memoryd does not use: the stand-in answers 501 there."""


def route_of(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """The route of a request and what its path names."""
    for route in ROUTES:
        named = route.match(path) if route.method == method else None
        if named is not None:
            return route, named
    return None


# -- checking ---------------------------------------------------------------------------------------------------------------


def problems(body: object, shape: str, place: tuple[str | int, ...] = ()) -> Iterator[Problem]:
    """What is wrong with ``body``; fields that the API does not know are ignored, as the server does."""
    if not isinstance(body, dict):
        yield Problem(place, "model_attributes_type", body)
        return
    for name, field in BODIES[shape].items():
        value = body.get(name)
        if name not in body and field.required:
            yield Problem((*place, name), "missing", body)
        elif value is not None:
            yield from _field_problems(value, field, (*place, name))
        elif name in body and field.required:
            yield Problem((*place, name), f"{field.kind}_type", None)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "text": (str,), "id": (str,), "time": (str,), "whole": (int,), "number": (int, float), "object": (dict,), "list": (list,),
}  # fmt: skip


def _field_problems(value: Any, field: Field, place: tuple[str | int, ...]) -> Iterator[Problem]:
    if not _has_kind(value, field.kind):
        yield Problem(place, f"{field.kind}_type", value)
        return
    yield from (Problem(place, kind, value) for kind in _broken_rules(value, field))
    if field.kind == "list" and field.of:
        for index, item in enumerate(value):
            yield from problems(item, field.of, (*place, index))


def _has_kind(value: Any, kind: Kind) -> bool:
    return isinstance(value, _TYPES[kind])


def _broken_rules(value: Any, field: Field) -> Iterator[str]:
    size = value if field.kind in ("whole", "number") else len(value)
    if field.least is not None and size < field.least:
        yield "too_short"
    if field.most is not None and size > field.most:
        yield "too_long"
    if field.kind == "id" and not re.match(ID, value):
        yield "string_pattern_mismatch"
    if field.kind == "time" and not _is_time(value):
        yield "datetime_parsing"


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
