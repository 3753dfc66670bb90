"""Keys that a terminal, a mail program or a string literal broke over several lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

import attrs

from memoryd.core import Detector, Span

__all__ = ["across_lines"]

# the end of a line, with what a quotation, a shell or a string literal puts around it
_BREAK = re.compile(r"""[ \t]*["']?[ \t]*[+\\]?[ \t]*(?:\r\n|\n|\r|\\n)[ \t]*(?:[>|#*][ \t]?){0,8}(?:\+[ \t]*)?["']?""")
_ENDS = ("\n", "\r", "\\n")
_LAST = re.compile(r"[^\s\"'`]{1,256}\Z")
_FIRST = re.compile(r"[^\s\"'`]{1,256}")
_WINDOW = 256


@attrs.frozen(slots=True)
class _Joined:
    """A text without some of its line breaks: ``seams`` are the places in it where one was, ``starts`` where the original goes on."""

    text: str
    seams: tuple[int, ...]
    starts: tuple[int, ...]

    def crosses(self, span: Span) -> bool:
        return bisect_right(self.seams, span.end - 1) > bisect_right(self.seams, span.start)

    def original(self, span: Span) -> Span:
        """The same characters in the original, the breaks between them included."""
        return Span(self._place(span.start), self._place(span.end - 1) + 1, span.label)

    def _place(self, position: int) -> int:
        index = bisect_right(self.seams, position) - 1
        return self.starts[index] + position - self.seams[index]


def across_lines(find: Detector) -> Detector:
    """What ``find`` finds only when lines are joined; joined where both ends look like pieces of a key, not like words."""

    def joined(text: str) -> Iterator[Span]:
        if not any(end in text for end in _ENDS):
            return
        whole = _join(text)
        if len(whole.seams) > 1:
            yield from (whole.original(span) for span in find(whole.text) if whole.crosses(span))

    return joined


def _join(text: str) -> _Joined:
    pieces: list[str] = []
    seams, starts = [0], [0]
    done = length = 0
    for found in _BREAK.finditer(text):
        if not _splits_key(text, *found.span()):
            continue
        pieces.append(text[done : found.start()])
        length += found.start() - done
        done = found.end()
        seams.append(length)
        starts.append(done)
    pieces.append(text[done:])
    return _Joined("".join(pieces), tuple(seams), tuple(starts))


def _splits_key(text: str, start: int, end: int) -> bool:
    before = _LAST.search(text[max(0, start - _WINDOW) : start])
    after = _FIRST.match(text, end)
    return before is not None and after is not None and _is_piece(before[0]) and _is_piece(after[0])


def _is_piece(token: str) -> bool:
    """Whether ``token`` may be a piece of a key: not a word, with or without a sentence's mark behind it."""
    word = token.strip(".,;:!?()")
    if any(char.isdigit() or char in "_-+/=" for char in word):
        return True
    inner = word[1:]
    return len(word) >= 16 or (inner != inner.lower() and (inner != inner.upper() or len(word) >= 8))
