"""The one text analysis, for index and query alike: what a text looks like to the full-text index.

The result goes through the index's own tokenizer (:data:`TOKENIZER`); nothing here is ever passed to SQLite as query syntax.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import TypeAlias

from memoryd.recall._language import Language
from memoryd.recall._script import EMOJI, UNSPACED, emoji_word, pieces

__all__ = ["QUESTION", "QUOTED", "TIMED", "TOKENIZER", "Tokenize", "flags_of", "index_text", "normal"]

QUESTION = 1  # flag: the utterance ends with a question mark
TIMED = 2  # flag: the utterance names a time
QUOTED = 4  # flag, set for one query: the utterance has its quotations word for word

TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc")

Tokenize: TypeAlias = Callable[[bytes], list[tuple[int, int, str]]]
"""The index's tokenizer: UTF-8 bytes to (start, end, token), in order."""

_WORD = re.compile(r"[A-Za-z]+")
_QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e")
_SURROGATES = re.compile("[\ud800-\udfff]")


def index_text(text: str, language: Language) -> str:
    """``text`` as it is indexed and searched: encodable as UTF-8, without NUL, cut for scripts without spaces, in base forms."""
    plain = normal(text)
    cut = plain if plain.isascii() else UNSPACED.sub(lambda run: pieces(run[0]), plain)
    return _base_forms(language.endings.sub("", cut), language.irregular)


def normal(text: str) -> str:
    """``text`` in compatibility form, with spaces for NUL and lone surrogates, and each emoji a word."""
    spaced = text.replace("\0", " ") if "\0" in text else text
    if spaced.isascii():
        return spaced
    return EMOJI.sub(emoji_word, unicodedata.normalize("NFKC", _SURROGATES.sub(" ", spaced)))


def flags_of(text: str, language: Language) -> int:
    """What ranking asks of a text besides its words: :data:`QUESTION`, :data:`TIMED`."""
    asks = QUESTION if text.rstrip().endswith(_QUESTION_MARKS) else 0
    return asks | (TIMED if language.tells_time.search(text) else 0)


def _base_forms(text: str, irregular: Mapping[str, str]) -> str:
    if not irregular or irregular.keys().isdisjoint(_WORD.findall(text.lower())):
        return text
    return _WORD.sub(lambda word: irregular.get(word[0].lower(), word[0]), text)
