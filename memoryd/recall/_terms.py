"""What a query asks for: terms to look up, phrases that must be adjacent, people, and times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import attrs

from memoryd.core import Value
from memoryd.recall._language import Language
from memoryd.recall._script import pairs, unspaced, vowel_marked
from memoryd.recall._text import Tokenize, index_text, normal

__all__ = ["MAX_TERMS", "UNNAMED", "NOTHING", "Asked", "Dates", "Phrase", "Term", "analyse"]

MAX_TERMS = 64
UNNAMED = frozenset({"", "default", "user", "assistant"})
"""What hosts put where they know no name: no actor of that name can be asked for."""
_LOOKED_AT = 4096
_WHOLE_WORD = 4  # characters up to which a run of a vowel-marked script is one word
# Patterns are compiled at the first query (re keeps them), not at import.
_QUOTED = '["\u201c\u201d]([^"\u201c\u201d]+)["\u201c\u201d]'
_YEAR = r"\b(?:19|20)\d\d\b"
_DAY_MONTH = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?([^\W\d_]+)", re.IGNORECASE)
_MONTH_DAY = re.compile(r"\b([^\W\d_]+)\s+(\d{1,2})(?:st|nd|rd|th)?\b", re.IGNORECASE)
_ISO_DATE = r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b"
_CAPITAL_WORD = r"\b[^\W\d_]+"


@attrs.frozen(slots=True, eq=False, repr=False)
class Term(Value):
    """One thing to look up: any of ``words`` (forms of one word), or with ``whole`` all of them (pieces of one word).

    ``words`` are surface forms that are one token each, ``stems`` those tokens.  ``stem`` identifies the term.
    """

    stem: str
    words: tuple[str, ...]
    stems: frozenset[str]
    whole: bool = False

    def is_in(self, tokens: frozenset[str]) -> bool:
        """Whether a text with these tokens has the term."""
        return self.stems <= tokens if self.whole else not self.stems.isdisjoint(tokens)


@attrs.frozen(slots=True, eq=False, repr=False)
class Phrase(Value):
    """A quotation: ``stems`` must stand side by side, or ``inside`` (a script without spaces) must be part of the text."""

    inside: str | None
    stems: tuple[str, ...]

    def matches(self, text: str, tokenize: Tokenize) -> bool:
        """Whether ``text`` has the quotation word for word (but for regular inflection)."""
        if self.inside is not None:
            return self.inside in _folded(text)
        stems = _stems(text, tokenize)
        width = len(self.stems)
        return any(stems[start : start + width] == self.stems for start in range(len(stems) - width + 1))


@attrs.frozen(slots=True, eq=False, repr=False)
class Dates(Value):
    """Years, months (1-12) and days of the month that a query names."""

    years: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.years or self.months or self.days)


@attrs.frozen(slots=True, eq=False, repr=False)
class Asked(Value):
    """An analysed query.

    ``phrases`` are quotations: where the query is nothing else (``only_phrases``) a text must have them all, else it earns by them.
    ``one_word`` is a query without spaces, of which a text must have some.  ``who`` are the actors that are named; ``times``, where
    the query asks when, finds what names a time.
    """

    terms: tuple[Term, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    only_phrases: bool = False
    one_word: bool = False
    who: frozenset[str] = frozenset()
    times: Term | None = None
    dates: Dates = Dates()

    def __bool__(self) -> bool:
        return bool(self.terms)

    @property
    def subject(self) -> str | None:
        """The one actor that is named; None for none, or several."""
        return next(iter(self.who)) if len(self.who) == 1 else None

    def is_quoted_in(self, text: str, tokenize: Tokenize) -> bool:
        """Whether ``text`` has every quotation of the query (and there is one)."""
        return bool(self.phrases) and all(phrase.matches(text, tokenize) for phrase in self.phrases)


NOTHING = Asked()


def analyse(text: str, language: Language, tokenize: Tokenize, actors: Iterable[str] = ()) -> Asked:
    """``text`` (its first 4,096 characters) as an :class:`Asked`; falsy where there is nothing to look for.  Never raises.

    A word that is the name of one of ``actors`` narrows by who spoke and is no term, unless nothing else is left.
    """
    looked_at = language.endings.sub("", text[:_LOOKED_AT])
    terms = list(_terms(looked_at, tokenize))
    names = _name_words(actors, language, tokenize)
    meant = _meant(terms, names, language)
    kept = meant or [term for term in terms if term.stem in names] or terms
    if not kept:
        return NOTHING
    phrases = _phrases(looked_at, tokenize)
    unquoted = _meant(_terms(re.sub(_QUOTED, " ", looked_at), tokenize), names, language) if phrases else []
    families = _families(language, tokenize)
    return Asked(
        terms=tuple({term.stem: term for term in (families.get(term.stem, term) for term in kept)}.values())[:MAX_TERMS],
        phrases=phrases,
        only_phrases=bool(phrases) and not unquoted,
        one_word=len(looked_at.split()) == 1,
        who=frozenset(names[term.stem] for term in terms if term.stem in names) if meant else frozenset(),
        times=_times(language, tokenize) if language.asks_when.search(looked_at) else None,
        dates=_dates(looked_at, language),
    )


def _meant(terms: Iterable[Term], names: Mapping[str, str], language: Language) -> list[Term]:
    """The terms that are neither stopwords nor names."""
    return [term for term in terms if term.words[0].lower() not in language.stopwords and term.stem not in names]


def _terms(text: str, tokenize: Tokenize) -> Iterator[Term]:
    """The terms of a text in order, duplicates included: words, and the runs of scripts without spaces in pieces."""
    plain = normal(text)
    for index, part in enumerate([plain] if plain.isascii() else unspaced().split(plain)):
        yield from _run_terms(part, tokenize) if index % 2 else _words(part, tokenize)


def _words(text: str, tokenize: Tokenize) -> Iterator[Term]:
    """Each token with its surface word: stemming a stem again may give another stem, so that words are looked up, not stems."""
    encoded = index_text(text).encode()
    for start, end, stem in tokenize(encoded):
        yield Term(stem, (encoded[start:end].decode(),), frozenset((stem,)))


def _run_terms(run: str, tokenize: Tokenize) -> Iterator[Term]:
    """The two-character pieces of a run, each a term; a short word of a script with vowel marks is one term that needs them all."""
    found = list(_words(" ".join(pairs(run)), tokenize))
    cut = [term for term in found if len(term.stem) > 1] or found
    if 1 < len(run) <= _WHOLE_WORD and vowel_marked(run):
        stems = [term.stem for term in cut]
        yield Term(" ".join(stems), tuple(term.words[0] for term in cut), frozenset(stems), whole=True)
    else:
        yield from cut


@lru_cache(maxsize=8)
def _families(language: Language, tokenize: Tokenize) -> Mapping[str, Term]:
    """For the stem of each word that has irregular forms, and of each such form, the term that looks for all of them."""
    words_of: dict[str, list[str]] = {}
    for base, forms in language.forms.items():
        family = (base, *forms)
        for word in family:
            words_of.setdefault(_stems(word, tokenize)[0], []).extend(family)
    return {stem: _family(words, tokenize) for stem, words in words_of.items()}


@lru_cache(maxsize=8)
def _times(language: Language, tokenize: Tokenize) -> Term:
    return _family(language.time_words, tokenize)


def _family(words: Iterable[str], tokenize: Tokenize) -> Term:
    distinct = tuple(dict.fromkeys(words))
    stems = [_stems(word, tokenize)[0] for word in distinct]
    return Term(stems[0], distinct, frozenset(stems))


def _name_words(actors: Iterable[str], language: Language, tokenize: Tokenize) -> dict[str, str]:
    """Stem to actor, for each word of the actors' names that is no stopword.  An id such as ``docker-team-7`` is no name."""
    named = [actor for actor in actors if all(part.isalpha() for part in actor.split())]
    return {
        term.stem: actor for actor in named for term in _words(actor, tokenize)
        if len(term.stem) > 1 and term.words[0].lower() not in language.stopwords
    }


def _phrases(text: str, tokenize: Tokenize) -> tuple[Phrase, ...]:
    """Each balanced quotation that has two words or more (or is of a script without spaces)."""
    quoted = ((match[1], _stems(match[1], tokenize)) for match in re.finditer(_QUOTED, text))
    return tuple(Phrase(_folded(inner) if _has_run(inner) else None, stems) for inner, stems in quoted if len(stems) > 1)


def _has_run(text: str) -> bool:
    return not text.isascii() and unspaced().search(text) is not None


def _stems(text: str, tokenize: Tokenize) -> tuple[str, ...]:
    return tuple(stem for _, _, stem in tokenize(index_text(text).encode()))


def _folded(text: str) -> str:
    return normal(text).casefold()


def _dates(text: str, language: Language) -> Dates:
    years = {int(year) for year in re.findall(_YEAR, text)}
    months = {number for word in re.findall(_CAPITAL_WORD, text) if word[0].isupper() and (number := language.months.get(word.lower()))}
    days = set(_days(text, language.months))
    for _, month, day in re.findall(_ISO_DATE, text):
        months.add(int(month))
        days.add(int(day))
    return Dates(frozenset(years), frozenset(months), frozenset(days))


def _days(text: str, months: Mapping[str, int]) -> Iterator[int]:
    """The numbers that stand beside the name of a month."""
    beside = [*_DAY_MONTH.findall(text), *((day, month) for month, day in _MONTH_DAY.findall(text))]
    return (int(day) for day, month in beside if month.lower() in months)
