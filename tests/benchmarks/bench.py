"""``make bench``: every figure as a ratio against a baseline of the same run; prints the table and writes JSON.

    python tests/benchmarks/bench.py [--json FILE] [--only NAME ...]

A figure that misses its bar is printed as MISS; the exit code is 0 all the same, because this is a report, not a test.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
MODULES = (
    "bench_append", "bench_checkpoint", "bench_project", "bench_recall", "bench_import", "bench_honcho", "bench_daemon", "bench_hermes", "bench_hooks",
    "bench_mcp",
)  # fmt: skip


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def measure(names: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found += load(name).run()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=Path(".cache/bench.json"), metavar="FILE")
    parser.add_argument("--only", nargs="+", choices=MODULES, default=list(MODULES), metavar="NAME")
    arguments = parser.parse_args()
    target = arguments.json.absolute()
    sys.path.insert(0, str(HERE))
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("HOME", "MEMORYD_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            os.environ[name] = scratch
        figures = measure(arguments.only)
    load("_figures").print_table(figures)
    target.parent.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    target.write_text(json.dumps({"at": time.time(), "machine": machine, "figures": figures}, indent=2) + "\n", "utf-8")
    print(f"written: {target}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
