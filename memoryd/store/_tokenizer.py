"""SQLite's own full-text tokenizers, for texts outside a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import apsw

from memoryd.store._fork import OUTSIDE

__all__ = ["load_tokenizer"]


def load_tokenizer(name: str, arguments: Sequence[str]) -> Callable[[bytes], list[tuple[int, int, str]]]:
    """The tokenizer ``name`` of FTS5: UTF-8 bytes to (start, end, token) in order.  Use it from one thread at a time."""
    with OUTSIDE:
        tokenize = apsw.Connection(":memory:").fts5_tokenizer(name, list(arguments))

    def tokens(text: bytes) -> list[tuple[int, int, str]]:
        with OUTSIDE:
            found = tokenize(text, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)
        return cast("list[tuple[int, int, str]]", found)

    return tokens
