"""What one daemon allows."""

from __future__ import annotations

import resource
from contextlib import suppress

import attrs

from memoryd.core import Config, Value

__all__ = ["Limits", "raise_open_files"]

_SPARE = 256  # descriptors for stores, which need some ten each


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Limits(Value):
    """Bytes, counts and seconds; docs/reference/config.md says what each means (section ``daemon``)."""

    frame_bytes: int
    in_flight: int
    connections: int
    idle: float
    stall: float
    profiles: int
    profile_idle: float
    drain: float

    @classmethod
    def of(cls, config: Config) -> Limits:
        found = config.daemon
        return cls(**{field.name: getattr(found, field.name) for field in attrs.fields(cls)})


def raise_open_files(connections: int) -> int:
    """Let this process have that many connections, as far as the system allows; returns how many it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections if soft == resource.RLIM_INFINITY else max(16, min(connections, soft - _SPARE))
