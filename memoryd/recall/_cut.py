"""Cutting text for people and models: valid UTF-8 at any length, and never inside what is seen as one character."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["cut_end", "cut_start", "printable"]

_SURROGATES = "[\ud800-\udfff]"
_JOINER = "\u200d"
_LOOKED_BACK = 64  # no character that is seen as one is longer


def printable(text: str) -> str:
    """``text`` with each lone surrogate replaced by U+FFFD: encodable as UTF-8."""
    return text if text.isascii() else re.sub(_SURROGATES, "\ufffd", text)


def cut_end(text: str, limit: int) -> str:
    """The longest start of ``text`` of at most ``limit`` characters that does not end inside a seen character."""
    if len(text) <= limit:
        return text
    end = max(limit, 0)
    for place in range(end, max(end - _LOOKED_BACK, 0), -1):
        if _is_boundary(text, place):
            return text[:place]
    return text[:end] if end > _LOOKED_BACK else ""


def cut_start(text: str, limit: int) -> str:
    """The longest end of ``text`` of at most ``limit`` characters that does not start inside a seen character."""
    start = max(len(text) - max(limit, 0), 0)
    for place in range(start, min(start + _LOOKED_BACK, len(text))):
        if _is_boundary(text, place):
            return text[place:]
    return text[start:] if len(text) - start > _LOOKED_BACK else ""


def _is_boundary(text: str, place: int) -> bool:
    """Whether a cut before ``text[place]`` keeps seen characters whole."""
    if place == 0 or place == len(text):
        return True
    before, after = text[place - 1], text[place]
    if before == _JOINER or _extends(after):
        return False
    return not (_is_flag_letter(before) and _is_flag_letter(after) and _flag_letters_before(text, place) % 2)


def _extends(character: str) -> bool:
    """Combining marks, joiners, variation selectors, skin tones, the tags of flags."""
    code = ord(character)
    if code < 0x300:
        return False
    return (
        character == _JOINER or 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F
        or unicodedata.category(character) in ("Mn", "Mc", "Me")
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, place: int) -> int:
    count = 0
    while count < place and _is_flag_letter(text[place - 1 - count]):
        count += 1
    return count
