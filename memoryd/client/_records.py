"""Results as plain objects, for programs that have the standard library only: same names of classes and fields as in ``memoryd.core``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

__all__ = ["Accepted", "Record", "make_plain"]

_SHOWN = ("state", "seq", "event_id", "id", "verdict", "applied", "kind", "source", "local", "remote", "reason")


class Record(SimpleNamespace):
    """Fields as attributes; equal where class and fields are.  Its text shows no text of a turn or memory."""

    def __repr__(self) -> str:
        shown = (f"{name}={vars(self)[name]!r}" for name in _SHOWN if name in vars(self))
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # its fields may be changed


class Accepted(Record):
    """See :class:`memoryd.Accepted`."""

    state: str
    seq: int | None
    event_id: str
    reason: str

    def __init__(self, state: str, seq: int | None = None, event_id: str = "", reason: str = "") -> None:
        super().__init__(state=state, seq=seq, event_id=event_id, reason=reason)


class Recall(Record, Sequence[Any]):
    """See :class:`memoryd.Recall`: a sequence of hits."""

    hits: tuple[Any, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.hits)


class Drained(Record):
    """See :class:`memoryd.Drained`."""

    local: bool
    remote: bool

    def __bool__(self) -> bool:
        return self.local and self.remote


class Receipt(Record):
    """See :class:`memoryd.Receipt`."""

    verdict: str

    def __bool__(self) -> bool:
        return self.verdict == "archived"


class Verification(Record):
    """See :class:`memoryd.Verification`."""

    corrupt: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.corrupt


_CLASSES: dict[str, type[Record]] = {kind.__name__: kind for kind in (Accepted, Recall, Drained, Receipt, Verification)}


def make_plain(name: str, fields: Mapping[str, Any]) -> Record:
    """The record of that class with those fields; a class that has no behaviour of its own is made when it is first met."""
    kind = _CLASSES.get(name)
    if kind is None:
        kind = _CLASSES[name] = type(name.replace("\0", ""), (Record,), {})
    return kind(**fields)
