"""What it costs to import memoryd with its runtime, against ``import trio``: CPU of whole processes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import Any

from _figures import figure, median

# names load lazily, so that a hook pays for nothing: this loads what an open runtime with the local backend has loaded
WITH_RUNTIME = "import memoryd, memoryd.runtime._open, memoryd_local._backend"
OPENED = """
import trio, memoryd
async def main():
    async with memoryd.open_runtime():
        pass
trio.run(main)
"""


def cpu_of(code: str) -> float:
    """User and system seconds of ``python -c code``."""
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)  # os.times() counts in steps of 10 ms
    subprocess.run([sys.executable, "-c", code], check=True, env=compiled)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run() -> list[dict[str, Any]]:
    codes = {"nothing": "pass", "trio": "import trio", "ours": WITH_RUNTIME, "opened": OPENED}
    for code in codes.values():
        cpu_of(code)
    times: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(9):
        for name, code in codes.items():
            times[name].append(cpu_of(code))
    ours, peer, nothing, opened = (median(times[name]) for name in ("ours", "trio", "nothing", "opened"))
    detail = (
        f"{ours * 1e3:.0f} ms CPU; trio {peer * 1e3:.0f} ms; python alone {nothing * 1e3:.0f} ms; "
        f"a runtime opened and closed {opened * 1e3:.0f} ms"
    )
    return [figure("import memoryd with its runtime / import trio", 1.2, 1.1, ours / peer, "x", detail)]
