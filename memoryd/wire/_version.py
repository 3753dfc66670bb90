"""The handshake: which version of the protocol both sides speak, and what the daemon tells of itself and the profile.

It needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from memoryd import __version__
from memoryd.errors import ProtocolError, ProtocolMismatch
from memoryd.wire._values import pack

__all__ = ["PROTOCOL", "SPOKEN", "Welcome", "common_version"]

PROTOCOL = 1
SPOKEN = (1, PROTOCOL)
"""The oldest and the newest version of the protocol that this program speaks."""


class Welcome(NamedTuple):
    """What ``hello`` is answered with.  ``config`` is the fingerprint of the profile's configuration, see
    :func:`memoryd.wire.config_fingerprint`; ``deadlines`` are its seconds by name; ``backend`` a BackendInfo.

    Without a profile (``hello`` with null) the fields that concern one are None or empty.
    """

    pid: int
    home: str | None = None
    profile: str | None = None
    backend: Any = None
    config: str = ""
    deadlines: Mapping[str, float] = {}
    limits: Mapping[str, int] = {}
    server: str = f"memoryd {__version__}"

    def to_json(self) -> dict[str, Any]:
        return {name: pack(value) for name, value in self._asdict().items()}


def common_version(asked: object, spoken: tuple[int, int] = SPOKEN) -> int:
    """The newest version that both speak; ``asked`` is the client's ``[oldest, newest]``.

    Raises :class:`ProtocolMismatch` saying which side is older, :class:`ProtocolError` for what is no pair of numbers.
    """
    match asked:
        case [int(oldest), int(newest)] if 0 < oldest <= newest:
            pass
        case _:
            raise ProtocolError("hello: protocol is not [oldest, newest]")
    if newest < spoken[0]:
        raise ProtocolMismatch(
            f"this client is older than the daemon (it speaks protocol {newest}, memoryd {__version__} speaks {spoken[0]} to {spoken[1]}): "
            "upgrade or restart the program that calls"
        )
    if oldest > spoken[1]:
        raise ProtocolMismatch(
            f"the daemon is older than this client (memoryd {__version__} speaks protocol {spoken[0]} to {spoken[1]}, the client from "
            f"{oldest} on): restart the daemon"
        )
    return min(newest, spoken[1])
