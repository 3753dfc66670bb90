"""Whether two processes see the same configuration."""

from __future__ import annotations

from hashlib import blake2b

import attrs

from memoryd.core import Config

__all__ = ["config_fingerprint"]

_NOT_THE_MEMORY = ("logging", "daemon")  # sections of a process, not of what it keeps


def config_fingerprint(config: Config) -> str:
    """16 hexadecimal digits that differ where anything but ``logging`` and ``daemon`` differs.  They tell nothing of the values."""
    plain = {name: value for name, value in attrs.asdict(config).items() if name not in _NOT_THE_MEMORY}
    return blake2b(repr(plain).encode("utf-8", "surrogatepass"), digest_size=8, person=b"memoryd-config").hexdigest()
