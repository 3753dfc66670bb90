"""Redaction: what finds secrets in a text is a port; how they are taken out of it is decided here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

__all__ = ["Detector", "Redactor", "RedactorFactory", "Span", "blank", "redactor_of"]

_WINDOW = 64 * 1024  # characters
_OVERLAP = 24 * 1024


class Span(NamedTuple):
    """Characters ``start`` to ``end`` (exclusive) of a text are a secret of the kind ``label``.  In order, spans are by place."""

    start: int
    end: int
    label: str


Detector: TypeAlias = Callable[[str], Iterable[Span]]
"""Finds secrets in a text; spans may overlap and come in any order."""

Redactor: TypeAlias = Callable[[str], str]
"""A text without its secrets.  May take milliseconds for a large text: called off the event loop."""

RedactorFactory: TypeAlias = Callable[[], Redactor]
"""Builds a :data:`Redactor`; may take seconds, once."""


def blank(text: str, spans: Iterable[Span]) -> str:
    """``text`` with ``[redacted:LABEL]`` in place of every span; spans that touch or overlap become one, named after the first."""
    parts: list[str] = []
    done = 0
    for span in _merged(spans):
        parts += text[done : span.start], f"[redacted:{span.label}]"
        done = span.end
    return "".join([*parts, text[done:]])


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    current: Span | None = None
    for span in sorted(span for span in spans if span.start < span.end):
        if current is None:
            current = span
        elif span.start <= current.end:
            current = current._replace(end=max(current.end, span.end))
        else:
            yield current
            current = span
    if current is not None:
        yield current


def redactor_of(*detectors: Detector) -> Redactor:
    """A :data:`Redactor` that takes out what any of ``detectors`` finds.

    A large text is looked at in windows that overlap by more than the longest secret: one search over all of it would hold up every
    other thread.
    """
    return lambda text: blank(text, (span for find in detectors for span in _in_windows(find, text)))


def _in_windows(find: Detector, text: str) -> Iterator[Span]:
    for start in range(0, max(1, len(text) - _OVERLAP), _WINDOW - _OVERLAP):
        for span in find(text[start : start + _WINDOW]):
            yield Span(start + span.start, start + span.end, span.label)
