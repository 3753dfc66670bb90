"""The dialect port: what a host's payloads and transcripts mean, and in which bytes it wants to be answered.  Pure.

Entry points in the group ``memoryd.dialects`` name objects that follow :class:`Dialect`; the entry point's name is the first argument of
the hook program.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias, cast

import attrs

from memoryd.core import Value
from memoryd.errors import InvalidInput
from memoryd.hosts._port import GateCapability
from memoryd.wire import HookReply

__all__ = ["SILENT", "Dialect", "Heard", "Kind", "Row", "RowKind", "find_dialect", "refused_blindly"]

GROUP = "memoryd.dialects"
SILENT = HookReply()

Kind: TypeAlias = Literal["gate", "start", "prompt", "turn", "agent-turn", "compacted", "end", "other"]
RowKind: TypeAlias = Literal["user", "assistant", "tool", "summary", "host", "sidechain", "boundary"]


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Heard(Value):
    """What a payload says.

    ``transcript`` is the path that it gives; None where the host says that it keeps none.  ``why`` is the trigger of a compaction, the
    source of a start, the reason of an end.  ``said`` is the assistant's last message, ``agent`` who it was if not the main thread.
    ``problem`` is set where the payload is not as the host documents it: a gate then refuses, anything else does nothing.
    """

    kind: Kind
    session: str = ""
    transcript: str | None = None
    cwd: str = ""
    why: str = ""
    prompt: str = attrs.field(default="", repr=False)
    said: str = attrs.field(default="", repr=False)
    agent: str = ""
    problem: str = ""


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Row(Value):
    """One record of a transcript, as far as it is about what was said.

    ``id`` is the record's own.  Records of one message share ``group``.  ``at`` is in microseconds since the epoch, None where it does
    not say.  ``content`` is what the host has as content; ``text`` its text.  A *summary* is a model's retelling, *host* what the host
    itself put in, *sidechain* what was said to or by a subagent (``agent``), *boundary* the place of a compaction.
    """

    kind: RowKind
    id: str
    text: str = attrs.field(default="", repr=False)
    content: Any = attrs.field(default="", repr=False)
    at: int | None = None
    group: str = ""
    agent: str = ""
    role: str = ""
    tools: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


class Dialect(Protocol):
    """A host's way of speaking.  Nothing here reads a file or a clock; nothing raises for any payload or record."""

    @property
    def name(self) -> str: ...

    def capability(self, version: str = "") -> GateCapability:
        """What a refusal does in that version of the host (empty: the newest)."""
        ...

    def hear(self, event: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> Heard: ...

    def kind(self, event: str) -> Kind:
        """What ``event`` is, also where its payload cannot be read."""
        ...

    def row(self, record: Mapping[str, Any]) -> Row | None:
        """What a record of the transcript says, or None for noise."""
        ...

    def time(self, record: Mapping[str, Any]) -> int | None:
        """When a record was written, in microseconds since the epoch; None where it does not say."""
        ...

    def allow(self, event: str, note: str) -> HookReply:
        """The compaction may go on; ``note`` is one line for whoever summarises (empty: nothing to say)."""
        ...

    def refuse(self, event: str, reason: str) -> HookReply: ...

    def inject(self, event: str, text: str) -> HookReply:
        """``text`` for the model's context."""
        ...


@lru_cache(maxsize=16)
def find_dialect(name: str) -> Dialect:
    """The dialect of that name; raises :class:`~memoryd.errors.InvalidInput` where none is installed."""
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=name):
        return cast(Dialect, point.load())
    raise InvalidInput("host", f"memoryd has no dialect named {name[:64]!r}")


def refused_blindly(event: str, reason: str) -> HookReply:
    """The answer to a host that is not known: exit code 2 stops a compaction in most of them, and disturbs nothing else."""
    return HookReply(2, b"", reason.encode() + b"\n") if event.lower().startswith(("precompact", "precompress")) else SILENT
