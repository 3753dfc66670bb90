"""The languages that can be chosen by configuration."""

from __future__ import annotations

from memoryd.errors import ConfigError
from memoryd.recall._english import ENGLISH
from memoryd.recall._language import NEUTRAL, Language

__all__ = ["language_named"]

_LANGUAGES = {"en": ENGLISH, "none": NEUTRAL}


def language_named(name: str) -> Language:
    """The language that the setting ``language`` names; raises :class:`~memoryd.errors.ConfigError` for another."""
    try:
        return _LANGUAGES[name]
    except KeyError:
        raise ConfigError(f"language: expected one of {', '.join(_LANGUAGES)}, got {name!r}") from None
