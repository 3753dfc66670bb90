"""A child that works on a profile and says that it begins: ``python child_maintain.py HOME FILE backup|restore|repair|rename|rekey|copy``."""

from __future__ import annotations

import sys
from pathlib import Path

from memoryd.core import build_config
from memoryd.maintain import (
    back_up,
    copy_profile,
    delete_profile,
    read_manifest,
    rekey_profile,
    rename_profile,
    repair,
    restore,
)

home, file, work = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
config = build_config({"logging.level": "off", "store.free_floor": 0})
DO = {
    "backup": lambda: back_up(home, "default", config, file),
    "restore": lambda: restore(home, file, read_manifest(file), config),
    "repair": lambda: repair(home, "default", config),
    "rename": lambda: rename_profile(home, "default", "other", config),
    "rekey": lambda: rekey_profile(home, "default", config),
    "copy": lambda: copy_profile(home, "default", "other", config),
    "delete": lambda: delete_profile(home, "default", config),
}
print("begins", flush=True)
DO[work]()
print("done", flush=True)
