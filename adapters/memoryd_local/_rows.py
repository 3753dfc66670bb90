"""How values stand in the rows of memory.db."""

from __future__ import annotations

import json
from collections.abc import Iterable

import attrs

from memoryd.core import Value
from memoryd.recall import prepare

__all__ = [
    "ASSISTANT", "DELETION", "EDIT", "MEMORY", "TURN", "USER", "WRITE", "Utterance", "blob", "id_list", "optional_blob", "optional_text",
    "span", "text", "utterance",
]

TURN, WRITE, DELETION, EDIT = 1, 2, 3, 4  # event.kind
USER, ASSISTANT, MEMORY = 0, 1, 2  # line.role


def blob(value: str) -> bytes:
    """Text of any characters, lone surrogates included, as bytes; injective."""
    return value.encode("utf-8", "surrogatepass")


def text(value: bytes) -> str:
    return value.decode("utf-8", "surrogatepass")


def optional_blob(value: str | None) -> bytes | None:
    return None if value is None else blob(value)


def optional_text(value: bytes | None) -> str | None:
    return None if value is None else text(value)


def id_list(ids: Iterable[int | None]) -> str:
    """Row ids as the JSON array that a query takes them in."""
    return json.dumps(list(ids))


def span(scope: int) -> tuple[int, int]:
    """The first and the last line id that a scope can have."""
    return scope << 32, (scope << 32) + 0xFFFFFFFF


@attrs.frozen(slots=True, eq=False, repr=False)
class Utterance(Value):
    """A text made ready for the index: ``indexed`` is what goes in, ``tokens`` its length, ``flags`` what ranking asks of it."""

    role: int
    indexed: str
    tokens: int
    flags: int


def utterance(role: int, value: str) -> Utterance:
    """The analysis of a text, done before the write transaction begins."""
    return Utterance(role, *prepare(value))
