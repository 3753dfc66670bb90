"""The summary that a host wrote at its last compaction, where its transcript has it already."""

from __future__ import annotations

import os
from contextlib import suppress

from memoryd.errors import InvalidInput
from memoryd.hosts._call import Call
from memoryd.hosts._transcript import read_lines

__all__ = ["summary_in"]

_LOOKED_BACK = 512 << 10


def summary_in(call: Call) -> str:
    """The summary after the last boundary of the transcript, or with it; empty where there is none.  Blocking."""
    path, found = call.heard.transcript, ""
    if not path:
        return ""
    with suppress(OSError, InvalidInput):
        start = max(0, os.stat(path).st_size - _LOOKED_BACK)
        for line in read_lines(path, start):
            row = call.dialect.row(line.record) if line.record is not None else None
            if row is None:
                continue
            if row.kind in ("boundary", "summary"):
                found = row.text
            elif row.kind == "user" and found:
                return found
    return found
