"""The arguments of a call, checked: a wrong one is an answer that names it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memoryd.core import check_text
from memoryd.errors import InvalidInput

__all__ = ["Arguments"]


class Arguments:
    """What a model gave, by name; null counts as absent.  Every method raises :class:`InvalidInput`."""

    def __init__(self, given: Mapping[str, Any] | None, known: Collection[str]) -> None:
        self._given = {name: value for name, value in (given or {}).items() if value is not None}
        if unknown := sorted(self._given.keys() - set(known)):
            raise InvalidInput(unknown[0], f"is no argument; there are: {', '.join(known)}")

    def text(self, name: str) -> str:
        """A text that has to be there, and not empty."""
        found = self.text_or_none(name)
        if not found:
            raise InvalidInput(name, "is required")
        return found

    def text_or_none(self, name: str) -> str | None:
        value = self._given.get(name)
        return None if value is None else check_text(name, value)

    def texts(self, name: str) -> Sequence[str]:
        value = self._given.get(name)
        if not isinstance(value, list) or not value:
            raise InvalidInput(name, "expected a list of texts")
        return [check_text(name, item) for item in value]

    def whole(self, name: str, default: int, maximum: int) -> int:
        value = self._given.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= maximum:
            raise InvalidInput(name, f"expected a whole number from 0 to {maximum}")
        return value

    def mapping(self, name: str) -> Mapping[str, Any] | None:
        value = self._given.get(name)
        if value is not None and not isinstance(value, dict):
            raise InvalidInput(name, "expected an object")
        return value

    def one_of(self, name: str, words: Sequence[str]) -> str:
        """One of ``words``; the first where none is given."""
        value = self._given.get(name, words[0])
        if value not in words:
            raise InvalidInput(name, f"expected one of {', '.join(words)}")
        return str(value)
