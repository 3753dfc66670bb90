"""The fence around recalled text, which marks it as data and as ours."""

from __future__ import annotations

import re

from memoryd.core import FENCE_NOTE
from memoryd.recall._cut import printable

__all__ = ["escape", "fence"]

_UNSEEN = "[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"


def fence(lines: str, marker: str) -> str:
    """``lines`` between one pair of marks."""
    return f"<{marker}>\n{FENCE_NOTE}\n{lines}\n</{marker}>"


def escape(text: str, marker: str) -> str:
    """``text`` on one line that can neither open nor close anything: no tag, no marker, no role label at a line's start."""
    one_line = re.sub(_UNSEEN, "", " ".join(printable(text).split()))
    return one_line.replace(marker, "\u2026").replace("<", "&lt;")
