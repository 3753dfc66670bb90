"""What it costs to import memoryd with its runtime, against ``import trio``: CPU of whole processes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from _figures import figure, median

WITH_RUNTIME = "import memoryd, memoryd_local; memoryd.open_runtime"


def cpu_of(code: str) -> float:
    """User and system seconds of ``python -c code``."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True)
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
