"""The index's tokenizer, outside the index."""

from __future__ import annotations

from memoryd.recall._text import TOKENIZER, Tokenize
from memoryd.store import load_tokenizer

__all__ = ["tokenizer"]


def tokenizer() -> Tokenize:
    """A tokenizer that cuts exactly as the full-text index does.  Each thread needs its own."""
    name, *arguments = TOKENIZER
    return load_tokenizer(name, arguments)
