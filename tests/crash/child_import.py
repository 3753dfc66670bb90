"""A child that imports and says how far it is: ``python child_import.py HOME FILE``."""

from __future__ import annotations

import sys
from pathlib import Path

from memoryd.core import Config
from memoryd.runtime import import_events

with open(sys.argv[2], "rb") as source:
    done = import_events(Path(sys.argv[1]), "default", Config(), source, on_progress=lambda done, total: print(done, flush=True))
print(done.events, done.added, flush=True)
