"""``python -m tests.daemon.clock serve ...``: memoryd with a wall clock that is off by as many seconds as the file $CLOCK_FILE says."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

_FILE = Path(os.environ["CLOCK_FILE"])
_time, _time_ns = time.time, time.time_ns


def offset() -> int:
    return int(_FILE.read_text() or 0)


time.time = lambda: _time() + offset()
time.time_ns = lambda: _time_ns() + offset() * 1_000_000_000

if __name__ == "__main__":
    from memoryd.cli import main

    sys.exit(main())
