"""A home with one profile that holds some of everything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.maintain.home import fill, with_runtime


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With spaces and quotes in its path."""
    return tmp_path / "it's a \"home\""


@pytest.fixture
def filled(home: Path) -> Path:
    with_runtime(home, fill)
    return home


@pytest.fixture
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """``run(source, *words)`` in a python of its own."""

    def run(source: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", source, *words], capture_output=True, text=True, timeout=60, check=False)

    return run
