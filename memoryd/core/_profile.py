"""A profile's directory name: no name can leave it, collide with another, or differ between file systems."""

from __future__ import annotations

import base64
import hashlib

from memoryd.core._check import check_name

__all__ = ["profile_folder"]


def profile_folder(name: str) -> str:
    """The directory of profile ``name`` below ``$MEMORYD_HOME/profiles``: 26 characters of lower-case base32 of its SHA-256.

    Raises :class:`~memoryd.errors.InvalidInput` for a name that is empty or longer than 500 characters.
    """
    digest = hashlib.sha256(check_name("profile", name).encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest).decode("ascii").lower()[:26]
