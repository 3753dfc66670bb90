"""Validators that attrs classes share.  Each raises :class:`InvalidInput` with the field's name."""

from __future__ import annotations

from typing import Any

import attrs

from memoryd.errors import InvalidInput

__all__ = [
    "MAX_NAME", "check_name", "check_text", "is_bytes16", "is_text", "not_negative", "optional_name", "optional_text", "required_name",
]

MAX_NAME = 500


def check_name(field: str, value: object) -> str:
    """``value`` as a name: non-empty text of at most :data:`MAX_NAME` characters (any characters)."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"expected text, got {type(value).__name__}")
    if not value:
        raise InvalidInput(field, "must not be empty")
    if len(value) > MAX_NAME:
        raise InvalidInput(field, f"is {len(value)} characters long; at most {MAX_NAME} are allowed")
    return value


def check_text(field: str, value: object) -> str:
    """``value`` as text of any length and any characters, lone surrogates and NUL included."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"expected text, got {type(value).__name__}")
    return value


def check_count(field: str, value: object) -> int:
    """``value`` as a whole number of at least 0 that a store can hold; above that it is cut."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidInput(field, "expected a whole number of at least 0")
    return min(value, 2**63 - 1)


def required_name(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    check_name(attribute.name, value)


def optional_name(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None:
        check_name(attribute.name, value)


def is_text(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    check_text(attribute.name, value)


def optional_text(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None:
        check_text(attribute.name, value)


def is_bytes16(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not bytes or len(value) != 16:
        raise InvalidInput(attribute.name, "expected 16 bytes")


def not_negative(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    check_count(attribute.name, value)


def is_flag(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidInput(attribute.name, f"expected True or False, got {type(value).__name__}")


def optional_flag(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None:
        is_flag(_, attribute, value)
