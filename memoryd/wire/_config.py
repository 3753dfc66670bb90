"""Whether two processes see the same configuration."""

from __future__ import annotations

from hashlib import blake2b

import attrs

from memoryd.core import Config, LoggingConfig

__all__ = ["config_fingerprint"]


def config_fingerprint(config: Config) -> str:
    """16 hexadecimal digits that differ where anything but ``logging`` differs.  It tells nothing of the values."""
    plain = attrs.evolve(config, logging=LoggingConfig())
    return blake2b(repr(attrs.asdict(plain)).encode("utf-8", "surrogatepass"), digest_size=8, person=b"memoryd-config").hexdigest()
