"""Real processes that use a memory and end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_script(tmp_path: Path) -> Run:
    """Run ``source`` in a python of its own, warnings being errors; ``words`` are its arguments.  It has a minute."""

    def run(source: str, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "script.py"
        script.write_text(source, "utf-8")
        command = [sys.executable, "-W", "error", str(script), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        return done

    return run
