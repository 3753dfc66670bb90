"""Canonical bytes and keyed digests: what makes two equal things the same bytes, and what stands for them.

Every digest is keyed (BLAKE2b under the profile's key), so that a short text that was erased cannot be guessed from its digest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TypeAlias

__all__ = ["DIGEST_SIZE", "Digest", "canonical_bytes", "digester", "keyed", "retired", "retired_forms"]

DIGEST_SIZE = 32
Digest: TypeAlias = Callable[..., bytes]
"""``digest(*parts: bytes) -> bytes``: 32 bytes that depend on each part and on where one part ends and the next begins."""

_ENCODE = json.JSONEncoder(
    check_circular=False, allow_nan=False, sort_keys=True, ensure_ascii=False, separators=(",", ":")
).encode
_CONTAINERS = (dict, list, tuple)


def canonical_bytes(value: object) -> bytes:
    """``value`` as JSON with sorted keys and no spaces, in UTF-8; a lone surrogate is written as its ``\\udXXX`` escape.

    Only JSON values are taken (a tuple counts as an array).  Raises ``TypeError`` for anything else, also for a key that is not
    text, and ``ValueError`` for NaN, infinities, and what is circular or nested too deeply.
    """
    try:
        text = _ENCODE(value)
    except RecursionError as error:
        raise ValueError("circular, or nested too deeply for JSON") from error
    _check_keys(value)
    return text.encode("utf-8", "backslashreplace")


def _check_keys(value: object) -> None:
    """json would write ``{1: ...}`` as ``{"1": ...}``: not what was given."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            "".join(item)  # the fastest way to raise TypeError for a key that is not text
            pending.extend([child for child in item.values() if isinstance(child, _CONTAINERS)])
        elif isinstance(item, (list, tuple)):
            pending.extend([child for child in item if isinstance(child, _CONTAINERS)])


def digester(key: bytes, purpose: str) -> Digest:
    """A function that digests parts under ``key`` for one ``purpose`` (at most 16 bytes): faster than :func:`keyed` when repeated."""
    start = blake2b(key=key, person=purpose.encode(), digest_size=DIGEST_SIZE)
    start.update(b"\1")  # completes the block of the key, so that it is mixed in here and not once for every digest

    def digest(*parts: bytes) -> bytes:
        state = start.copy()
        for part in parts:
            state.update(len(part).to_bytes(8, "little") + part)
        return state.digest()

    return digest


def keyed(key: bytes, purpose: str, *parts: bytes) -> bytes:
    """The 32-byte BLAKE2b digest of ``parts`` under ``key``; each part is prefixed with its length, so that no two lists collide."""
    return digester(key, purpose)(*parts)


def retired(key: bytes, digest: bytes) -> bytes:
    """What stands, under ``key``, for a digest that an earlier key made of something that is not known any more."""
    return keyed(key, "retired", digest)


def retired_forms(key: bytes, earlier: Sequence[bytes], make: Callable[[bytes], bytes]) -> list[bytes]:
    """What may stand for a thing that was digested before the key was renewed: ``make(k)`` digests it under ``k``.

    ``earlier`` are the keys before ``key``, the latest first; each renewal retired what the ones before had made.
    """
    forms = []
    for number, old in enumerate(earlier):
        form = make(old)
        for newer in (*reversed(earlier[:number]), key):
            form = retired(newer, form)
        forms.append(form)
    return forms
