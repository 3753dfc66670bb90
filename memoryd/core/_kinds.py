"""What a setting accepts.  Each kind checks a value from a file and parses one from an environment variable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, Protocol

import attrs

from memoryd.core._value import Value
from memoryd.errors import ConfigError

__all__ = ["Choice", "Flag", "Floor", "Kind", "Name", "Names", "Seconds", "Text", "Texts", "Whole", "setting"]

_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


class Kind(Protocol):
    """What a setting accepts.  ``expected`` completes the sentence *expected ...*; both methods raise ValueError."""

    @property
    def expected(self) -> str: ...
    def check(self, value: object) -> Any:
        """``value`` from a file or an argument, in the form that the schema keeps."""
        ...

    def parse(self, text: str) -> Any:
        """The value that ``text``, an environment variable, stands for."""
        ...


class Flag:
    expected = "true or false"

    def check(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError
        return value

    def parse(self, text: str) -> bool:
        if (word := text.strip().lower()) not in _WORDS:
            raise ValueError
        return _WORDS[word]


@attrs.frozen(slots=True, eq=False, repr=False)
class Whole(Value):
    minimum: int = 0
    maximum: int = 2**62

    @property
    def expected(self) -> str:
        return f"a whole number of at least {self.minimum}"

    def check(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not self.minimum <= value <= self.maximum:
            raise ValueError
        return value

    def parse(self, text: str) -> int:
        return self.check(int(text.strip()))


class Seconds:
    expected = "a number of seconds above 0"

    def check(self, value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError
        if not (math.isfinite(value) and 0 < value <= 86_400):
            raise ValueError
        return float(value)

    def parse(self, text: str) -> float:
        return self.check(float(text.strip()))


@attrs.frozen(slots=True, eq=False, repr=False)
class Choice(Value):
    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        return "one of " + ", ".join(f'"{word}"' for word in self.words)

    def check(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise ValueError
        return value

    def parse(self, text: str) -> str:
        return self.check(text.strip().lower())


class Text:
    expected = "text"

    def check(self, value: object) -> str:
        if not isinstance(value, str) or "\0" in value:
            raise ValueError
        return value

    parse = check


class Texts:
    expected = "a list of texts"

    def check(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError
        return tuple(dict.fromkeys(Text().check(item) for item in value if item != ""))

    def parse(self, text: str) -> tuple[str, ...]:
        return self.check([part.strip() for part in text.split(",") if part.strip()])


class Name:
    expected = "the name of a backend"

    def check(self, value: object) -> str:
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise ValueError
        return value.strip().lower()

    parse = check


class Names:
    expected = "a list of names of backends"

    def check(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list | tuple):
            raise ValueError
        return tuple(dict.fromkeys(Name().check(item) for item in value))

    def parse(self, text: str) -> tuple[str, ...]:
        return self.check([part for part in text.split(",") if part.strip()])


class Floor:
    expected = '"auto" or a whole number of bytes'

    def check(self, value: object) -> int | Literal["auto"]:
        return "auto" if value == "auto" else Whole().check(value)

    def parse(self, text: str) -> int | Literal["auto"]:
        return "auto" if text.strip().lower() == "auto" else Whole().parse(text)


def setting(default: Any, kind: Kind, doc: str) -> Any:
    """A field of the schema: checked by ``kind`` however it was made, with the one line that documents it."""
    return attrs.field(
        default=default,
        converter=attrs.Converter(_checked(kind), takes_field=True),
        metadata={"kind": kind, "doc": doc},
    )


def _checked(kind: Kind) -> Callable[[object, attrs.Attribute[Any]], Any]:
    def convert(value: object, field: attrs.Attribute[Any]) -> Any:
        try:
            return kind.check(value)
        except ValueError:
            raise ConfigError(f"{field.name}: expected {kind.expected}") from None

    return convert
