"""What recall knows about one natural language: words as data.  Nothing else in recall depends on a language."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

__all__ = ["NEUTRAL", "Language"]

_NEVER = re.compile(r"(?!)")


@attrs.frozen(slots=True, eq=False)
class Language:
    """Only queries depend on a language, the index does not: it can be changed at any time.

    ``forms`` maps a word to its irregular forms, which a query for any of them also looks for.  ``endings`` matches what a query drops
    from the ends of words (possessives, contractions).  ``stopwords`` carry no meaning in a query.  ``asks_when`` matches a question
    about a time; a text with one of ``time_words`` may answer it.  ``months`` maps a folded word to its number (January is 1), to
    match a named date with an event's.
    """

    name: str
    stopwords: frozenset[str] = frozenset()
    forms: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    endings: re.Pattern[str] = _NEVER
    asks_when: re.Pattern[str] = _NEVER
    time_words: tuple[str, ...] = ()
    months: Mapping[str, int] = attrs.field(factory=dict)


NEUTRAL = Language("none")
