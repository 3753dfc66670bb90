"""What it costs to import memoryd with its runtime, against ``import trio``: CPU of whole processes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from _figures import figure, median

# names load lazily, so that a hook pays for nothing: this loads what an open runtime with the local backend has loaded
WITH_RUNTIME = "import memoryd, memoryd.runtime._open, memoryd_local._backend"


def cpu_of(code: str) -> float:
    """User and system seconds of ``python -c code``."""
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True, env=compiled)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def run() -> list[dict[str, Any]]:
    codes = {"nothing": "pass", "trio": "import trio", "ours": WITH_RUNTIME}
    for code in codes.values():
        cpu_of(code)
    times: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(9):
        for name, code in codes.items():
            times[name].append(cpu_of(code))
    ours, peer, nothing = (median(times[name]) for name in ("ours", "trio", "nothing"))
    detail = f"{ours * 1e3:.0f} ms CPU; trio {peer * 1e3:.0f} ms; python alone {nothing * 1e3:.0f} ms"
    return [figure("import memoryd with its runtime / import trio", 1.2, 1.1, ours / peer, "x", detail)]
