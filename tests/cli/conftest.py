"""Runs the command line as a person's shell does: a process, bytes in, bytes out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import attrs
import pytest


@attrs.frozen(slots=True)
class Done:
    """A finished command."""

    code: int
    stdout: bytes
    err: str

    @property
    def out(self) -> str:
        return self.stdout.decode("utf-8")

    @property
    def json(self) -> Any:
        """The one JSON value on stdout."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def lines(self) -> list[Any]:
        """A JSON value for each line of stdout."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Done]


@pytest.fixture
def memoryd() -> Run:
    """``memoryd("get", "city")``; ``stdin`` is text or bytes.  No command may print a traceback."""

    def run(*arguments: str, stdin: str | bytes = b"") -> Done:
        given = stdin.encode("utf-8") if isinstance(stdin, str) else stdin
        command = [sys.executable, "-m", "memoryd", *arguments]
        done = subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)
        error = done.stderr.decode("utf-8")
        assert "Traceback" not in error, error
        assert error.count("\n") <= 1 or done.returncode == 64, f"an error is one line:\n{error}"
        return Done(done.returncode, done.stdout, error)

    return run
