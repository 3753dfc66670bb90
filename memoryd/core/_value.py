"""What values share: equality, hash and text, written once.  Generated for each class they are half of what the class costs at import."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = ["Value"]


class Value:
    """Base of attrs classes made with ``eq=False, repr=False``: equal where class and fields are, and shown as attrs would."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return _fields(self) == _fields(other)

    def __hash__(self) -> int:
        return hash((self.__class__, _fields(self)))

    def __repr__(self) -> str:
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in attrs.fields(type(self)) if field.repr)  # type: ignore[arg-type]
        return f"{type(self).__qualname__}({', '.join(shown)})"


def _fields(value: Any) -> tuple[Any, ...]:
    return tuple([getattr(value, field.name) for field in attrs.fields(type(value))])
