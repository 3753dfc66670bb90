"""A home that is gone afterwards, also where this process is killed: a child of ours then cleans up in its place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["scratch_home"]

PREFIX = "memoryd-evaluate-"


@contextmanager
def scratch_home() -> Iterator[Path]:
    """A private directory for the block."""
    home = Path(tempfile.mkdtemp(prefix=PREFIX))  # mode 0700
    try:
        with _janitor(home):
            yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _janitor(home: Path) -> Iterator[None]:
    """A process of its own session that learns of our end, whatever ends us, by the end of its standard input.

    At an ordinary end it does what is left to do: erase what could not be erased off the machine, and remove the home.  It imports from
    where this process does and, by ``-P``, from nowhere else.
    """
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "memoryd.evaluate._janitor", str(home)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ, start_new_session=True,
    )  # fmt: skip
    assert child.stdin is not None
    try:
        yield
    finally:
        child.stdin.close()
        child.wait()
