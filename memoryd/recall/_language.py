"""What recall knows about one natural language: words as data.  Nothing else in recall depends on a language."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

__all__ = ["NEUTRAL", "Language"]

_NEVER = re.compile(r"(?!)")


@attrs.frozen(slots=True)
class Language:
    """``irregular`` maps inflected forms to their base; ``endings`` matches what is dropped from the ends of words before
    indexing (possessives, contractions).

    ``stopwords`` carry no meaning in a query.  ``asks_when`` matches a question about a time, ``tells_time`` a text that names one.
    ``months`` and ``weekdays`` map a folded word to its number (January is 1, Monday is 0), to match a named date with an event's.
    """

    name: str
    stopwords: frozenset[str] = frozenset()
    irregular: Mapping[str, str] = attrs.field(factory=dict)
    endings: re.Pattern[str] = _NEVER
    asks_when: re.Pattern[str] = _NEVER
    tells_time: re.Pattern[str] = _NEVER
    months: Mapping[str, int] = attrs.field(factory=dict)
    weekdays: Mapping[str, int] = attrs.field(factory=dict)


NEUTRAL = Language("off")
