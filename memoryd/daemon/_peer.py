"""Whose process is at the other end of a connection."""

from __future__ import annotations

import socket
import struct
import sys

__all__ = ["peer_uid"]

if sys.platform == "darwin":
    _LOCAL_PEERCRED = 1

    def peer_uid(connection: socket.socket) -> int:
        """The user id of the process that connected; raises :class:`OSError` where the connection is gone."""
        _, uid = struct.unpack_from("II", connection.getsockopt(0, _LOCAL_PEERCRED, 76))  # version, user id, groups
        return int(uid)

else:

    def peer_uid(connection: socket.socket) -> int:
        """The user id of the process that connected; raises :class:`OSError` where the connection is gone."""
        _, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(uid)
