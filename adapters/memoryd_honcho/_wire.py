"""Texts as Honcho can keep them: without what its database drops or its tokenizer chokes on, in pieces, and back again exactly."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["MOST_CHARACTERS", "escape", "pieces", "unescape"]

MOST_CHARACTERS = 8000
"""Characters in one piece.  The server takes 25,000, and measured: some texts of that size stop it for seconds."""
_FEW_CHARACTERS = 1000  # of a text with long runs of one character, whose cost grows with the square of the piece
_RUN = re.compile(r"(.)\1{255}", re.DOTALL)

_GAP = "\u200b"
_TOKEN = r"\|(?:endoftext|endofprompt|fim_prefix|fim_middle|fim_suffix)\|>"
# NUL is dropped without a word, a lone surrogate is no JSON; both are written as {GAP hex}
_BAD = r"[\x00\ud800-\udfff]"
_ESCAPED = re.compile(rf"<(?={_GAP}*{_TOKEN})|{{(?={_GAP}+[0-9a-f]{{4}}}})|{_BAD}")
_RESTORED = re.compile(rf"<{_GAP}(?={_GAP}*{_TOKEN})|{{{_GAP}(?={_GAP}+[0-9a-f]{{4}}}})|{{{_GAP}([0-9a-f]{{4}})}}")


def escape(text: str) -> str:
    """``text`` without poison.  Also a text of white space alone, which the SDK refuses, gets a visible form."""
    if text and not text.strip():
        return _coded(text[0]) + _ESCAPED.sub(_replacement, text[1:])
    return _ESCAPED.sub(_replacement, text)


def unescape(text: str) -> str:
    """What :func:`escape` was given."""
    return _RESTORED.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[0][0], text)


def _replacement(found: re.Match[str]) -> str:
    return found[0] + _GAP if found[0] in "<{" else _coded(found[0])


def _coded(char: str) -> str:
    return f"{{{_GAP}{ord(char):04x}}}"


def pieces(text: str) -> list[str]:
    """``text`` escaped, cut so that each piece is small enough; unescaped and joined they are ``text`` again."""
    size = _FEW_CHARACTERS if _RUN.search(text) else MOST_CHARACTERS
    return list(_pieces(text, size))


def _pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        piece = escape(text[start : start + size])
        if len(piece) <= 3 * MOST_CHARACTERS:
            yield piece
        else:  # nearly every character needs a form of its own
            yield from _pieces(text[start : start + size], size // 4)
