"""What a state means to a shell."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["exit_code"]

_CODES: Mapping[str, int] = {"ok": 0, "off": 0, "degraded": 3, "broken": 1}


def exit_code(state: str) -> int:
    """0 healthy (or switched off), 3 degraded, 1 broken: for ``status`` and ``doctor``."""
    return _CODES[state]
