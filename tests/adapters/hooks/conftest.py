"""What the tests of hooks share."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.hooks.archive import Archive

Memoryd = Callable[..., Any]


@pytest.fixture
def room(tmp_path: Path, private_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for one machine: its home of memoryd, and no daemon.  The socket's path is short enough for an address."""
    monkeypatch.setenv("MEMORYD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEMORYD_SOCKET", str(tmp_path / "run/m.sock"))
    return tmp_path


@pytest.fixture
def archive(room: Path) -> Archive:
    return Archive(room / "home")


@pytest.fixture
def memoryd() -> Memoryd:
    """``memoryd("status")``: its standard output; with ``--json`` what that says."""

    def run(*arguments: str, stdin: bytes = b"", code: int = 0) -> Any:
        command = [sys.executable, "-m", "memoryd", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr.decode()
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    return run
