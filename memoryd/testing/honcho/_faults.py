"""The bad days of a Honcho server, as they were measured, one fault for one request."""

from __future__ import annotations

from typing import Literal

import attrs

__all__ = ["Fault", "FaultName"]

FaultName = Literal["lock", "status", "late", "hang", "lost", "reset", "twice", "drip", "half", "html", "empty"]


@attrs.frozen(slots=True)
class Fault:
    """What happens to the next request that does ``on`` (a name of the route table, such as ``add_messages``; empty: any), after
    ``skip`` of them were answered well, ``times`` in a row.

    Nothing is kept: *lock* (500: another writer holds the session), *status* (``status``, with ``retry_after`` seconds if given),
    *lost* (the connection ends before the request is looked at), *hang* (no answer until :meth:`HonchoServer.release`).
    It is kept: *late* (only at :meth:`HonchoServer.release`, when the client has long gone), *reset* (the connection ends instead of an
    answer), *twice* (something on the way repeats the request), *drip* (the answer comes byte by byte, until :meth:`HonchoServer.release`),
    *half* (half of the answer), *html* (a page instead of the answer), *empty* (200 and nothing).
    """

    name: FaultName
    on: str = ""
    status: int = 503
    retry_after: str | None = None
    skip: int = 0
    times: int = 1
