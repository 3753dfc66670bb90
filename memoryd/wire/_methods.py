"""Every method that a client may call: the public methods of the runtime by the same names, and those of the daemon itself.

A test holds the table to the signatures of :class:`memoryd.Runtime`.  It needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

__all__ = ["COMMON", "METHODS", "SCOPE_FIELDS", "Method", "Param"]

Again: TypeAlias = Literal["yes", "by event id", "no"]

SCOPE_FIELDS = ("profile", "user", "session", "agent", "workspace", "platform", "private")


class Param(NamedTuple):
    """A parameter, by name.  One that is not required may be left out: it has the default of the runtime's method."""

    name: str
    type: str
    required: bool = True


class Method(NamedTuple):
    """``quick``: answered where it is read, in order; else in a task of its own, and answers may come in another order.

    ``again`` says whether the same request may be sent a second time where no answer came.  ``deadline`` names the setting under
    ``deadlines`` (with its default in seconds) that bounds it, or the parameter ``timeout``.
    """

    name: str
    params: tuple[Param, ...]
    result: str
    quick: bool
    again: Again
    deadline: str
    seconds: float
    of: Literal["profile", "daemon"] = "profile"

    @property
    def names(self) -> frozenset[str]:
        return frozenset(param.name for param in self.params)

    @property
    def required(self) -> frozenset[str]:
        return frozenset(param.name for param in self.params if param.required)


COMMON = (
    Param("scope", f"object: any of {', '.join(SCOPE_FIELDS)}", False),
    Param("event_id", "text: 32 hexadecimal digits, made by the client; the identity of the event", False),
    Param("retry", "whole number: this request may have been done before, with a `seq` above that one; its event id is looked for", False),
    Param("progress", "true: notifications `progress` come before the answer", False),
)
"""What the params of every method may hold beside its own."""

_WHEN = "time, number (seconds since the epoch), ISO 8601 text or null"
_MAYBE = "text or null"
_ID, _KEY = Param("id", "text"), Param("key", "text")
_LIMIT = Param("limit", "whole number", False)
_TIMEOUT = Param("timeout", "seconds")
_MADE = Param("created_at", _WHEN, False)
_AS_OF = Param("as_of", _WHEN, False)


def _p(name: str, type: str) -> Param:
    return Param(name, type, False)


_TABLE = (
    Method(
        "sync_turn",
        (
            Param("user", "text"), Param("assistant", "text"), _p("messages", "array of anything or null"), _p("turn_id", _MAYBE), _MADE,
        ),
        "Accepted", True, "by event id", "", 2.0,
    ),
    Method("mark_session", (Param("mark", "text"), _p("data", "object or null")), "Accepted", True, "by event id", "", 2.0),
    Method("queue_prefetch", (Param("query", "text"),), "null", True, "yes", "", 2.0),
    Method("dead_letters", (), "array of DeadLetter", True, "yes", "", 2.0),
    Method("settled", (Param("accepted", "Accepted"), _TIMEOUT), "Accepted", False, "yes", "timeout", 5.0),
    Method(
        "store", (_KEY, Param("value", "text"), _p("metadata", "object or null"), _MADE), "Stored", False, "by event id", "store", 2.0
    ),
    Method("delete", (_KEY,), "Stored", False, "by event id", "store", 2.0),
    Method(
        "edit", (_ID, _p("value", _MAYBE), _p("user", _MAYBE), _p("assistant", _MAYBE)), "Stored", False, "by event id", "store", 2.0
    ),
    Method(
        "recall",
        (Param("query", "text"), _LIMIT, _AS_OF, _p("session", _MAYBE), _p("labels", "object or null")),
        "Recall", False, "yes", "recall", 2.0,
    ),
    Method("prefetch", (Param("query", "text"),), "Context", False, "yes", "prefetch", 0.3),
    Method("retrieve", (_KEY,), "Memory or null", False, "yes", "retrieve", 2.0),
    Method("query", (Param("text", "text"), _LIMIT), "array of Memory", False, "yes", "query", 2.0),
    Method("list_keys", (), "array of text", False, "yes", "retrieve", 2.0),
    Method(
        "list_memories", (_p("limit", "whole number or null"), _p("offset", "whole number")), "array of Memory",
        False, "yes", "retrieve", 2.0,
    ),
    Method("history", (_KEY, _AS_OF), "array of MemoryVersion", False, "yes", "retrieve", 2.0),
    Method("find", (_ID,), "Hit or null", False, "yes", "retrieve", 2.0),
    Method(
        "forget",
        (
            _p("id", _MAYBE), _p("key", _MAYBE), _p("session", _MAYBE), _p("since", _WHEN), _p("until", _WHEN),
            _p("everything", "true or false"),
        ),
        "Forgotten", False, "yes", "drain", 10.0,
    ),
    Method("flush", (_p("timeout", "seconds or null"),), "null", False, "yes", "flush", 5.0),
    Method("drain", (_p("timeout", "seconds or null"),), "Drained", False, "yes", "drain", 10.0),
    Method("catch_up", (_TIMEOUT,), "whole number", False, "yes", "timeout", 5.0),
    Method(
        "checkpoint",
        (Param("messages", "array of anything or null"), _p("host", "text"), _p("trigger", "text"), _p("source", "bytes or null")),
        "Receipt", False, "yes", "checkpoint", 20.0,
    ),
    Method("checkpoints", (_p("session", _MAYBE), _LIMIT), "array of CheckpointInfo", False, "yes", "retrieve", 2.0),
    Method("checkpoint_info", (_ID,), "CheckpointInfo", False, "yes", "retrieve", 2.0),
    Method(
        "restore", (_ID, _p("attempt", "whole number or null"), _p("full", "true or false")), "Restored", False, "yes", "checkpoint", 20.0
    ),
    Method("verify", (_p("id", _MAYBE),), "Verification", False, "yes", "", 20.0),  # between two signs of progress
    Method("status", (), "Status", False, "yes", "retrieve", 2.0),
    Method("ping", (), "null", True, "yes", "", 2.0, "daemon"),
    Method("daemon_status", (), "object", False, "yes", "", 5.0, "daemon"),
)  # fmt: skip

METHODS: Mapping[str, Method] = {method.name: method for method in _TABLE}
"""By name.  ``of`` is *daemon* for methods that need no profile."""
