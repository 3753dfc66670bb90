"""Scripts that write words without spaces, and emoji: cut so that a word index can find what is inside.

A run of such a script becomes its overlapping two-character pieces and its single characters.  An emoji becomes one character of the
private use planes, which every tokenizer of words keeps as a word of its own.
"""

from __future__ import annotations

import re
from functools import cache

__all__ = ["emoji", "emoji_word", "pairs", "pieces", "unspaced", "vowel_marked"]

_HAN_KANA_HANGUL = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3031-\u3035\u303b\u3040-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00016fe0-\U00018aff\U0001b000-\U0001b16f\U00020000-\U000323af"
)
_THAI_LAO_KHMER_BURMESE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"

_EMOJI = "\u203c\u2049\u231a-\u23ff\u25fb-\u25fe\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"


@cache  # 2 ms to compile, which only text in other scripts needs
def unspaced() -> re.Pattern[str]:
    """Matches a run of scripts without spaces, as a group: ``split`` gives words and runs in turn."""
    return re.compile(f"([{_HAN_KANA_HANGUL}{_THAI_LAO_KHMER_BURMESE}]+)")


@cache
def emoji() -> re.Pattern[str]:
    """Matches one emoji."""
    return re.compile(f"[{_EMOJI}]")


@cache
def _marked() -> re.Pattern[str]:
    return re.compile(f"[{_THAI_LAO_KHMER_BURMESE}]")


def vowel_marked(run: str) -> bool:
    """Whether a run is of a script in which one mark makes another word, so that a short word must match whole."""
    return _marked().match(run) is not None


def pairs(run: str) -> list[str]:
    """The overlapping two-character pieces of a run; the run itself where it has one character."""
    return [run[index : index + 2] for index in range(len(run) - 1)] or [run]


def pieces(run: str) -> str:
    """What stands in the index for a run: its pairs and its single characters, as words."""
    return f" {' '.join(pairs(run))} {' '.join(run)} " if len(run) > 1 else f" {run} "


def emoji_word(found: re.Match[str]) -> str:
    """The word that stands in the index for an emoji (skin tones, joiners and variation selectors are no part of it)."""
    code = ord(found[0])
    return f" {chr(0xF0000 + code if code < 0x10000 else 0x100000 + (code & 0xFFFF))} "
