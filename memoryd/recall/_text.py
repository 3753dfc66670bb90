"""The one text analysis, for index and query alike: what a text looks like to the full-text index.

The result goes through the index's own tokenizer (:data:`TOKENIZER`); nothing here is ever passed to SQLite as query syntax.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from memoryd.recall._script import emoji, emoji_word, pieces, unspaced

__all__ = ["QUESTION", "QUOTED", "SPOKEN", "TIMED", "TOKENIZER", "Indexed", "Tokenize", "index_text", "normal", "prepare"]

QUESTION = 1  # flag: the utterance ends with a question mark
TIMED = 2  # flag, set for one query that asks when: the utterance names a time
QUOTED = 4  # flag, set for one query: the utterance has its quotations word for word
SPOKEN = 8  # flag, set for one query: said by the one whom the query names

TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc")

Tokenize: TypeAlias = Callable[[bytes], list[tuple[int, int, str]]]
"""The index's tokenizer: UTF-8 bytes to (start, end, token), in order."""

_ANY_WORD = re.compile(r"[^\W_]+")
_QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e")
_GREEK_CYRILLIC = "[\u0370-\u052f\u1f00-\u1fff]"
_ACCENTS = "[\u0300-\u036f]"
_SURROGATES = "[\ud800-\udfff]"
_WORDS = bytes(code if chr(code).isalnum() and code < 128 else 32 for code in range(256))  # anything else is a space


class Indexed(NamedTuple):
    """A text as the index takes it, its length in words, and its flags (:data:`QUESTION`)."""

    text: str
    tokens: int
    flags: int


def prepare(text: str) -> Indexed:
    """What the index and the ranking need of ``text``.  It depends on no language."""
    indexed = index_text(text)
    tokens = len(indexed.encode().translate(_WORDS).split()) if indexed.isascii() else len(_ANY_WORD.findall(indexed))
    return Indexed(indexed, tokens, QUESTION if text.rstrip().endswith(_QUESTION_MARKS) else 0)


def index_text(text: str) -> str:
    """``text`` as it is indexed and searched: encodable as UTF-8, without NUL, cut for scripts without spaces."""
    plain = normal(text)
    return plain if plain.isascii() else unspaced().sub(lambda run: pieces(run[0]), plain)


def normal(text: str) -> str:
    """``text`` in compatibility form, with spaces for NUL and lone surrogates, and each emoji a word."""
    spaced = text.replace("\0", " ") if "\0" in text else text
    if spaced.isascii():
        return spaced
    composed = unicodedata.normalize("NFKC", re.sub(_SURROGATES, " ", spaced))
    return emoji().sub(emoji_word, _without_accents(composed) if re.search(_GREEK_CYRILLIC, composed) else composed)


def _without_accents(text: str) -> str:
    """The tokenizer folds accents of Latin letters only; this folds those of Greek and Cyrillic ones as well."""
    return unicodedata.normalize("NFC", re.sub(_ACCENTS, "", unicodedata.normalize("NFD", text)))

