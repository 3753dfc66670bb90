"""A disk that is full: no file of the process may grow beyond some size.  Each command fails in one typed line, and all is as before."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.maintain import back_up, profile_names
from tests.crash.test_maintain_killed import CHILD, CONFIG, copied, whole
from tests.unit.maintain.home import fill, with_runtime

KIB = 1024


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("original") / "home"
    with_runtime(home, lambda rt: fill(rt, 60))
    back_up(home, "default", CONFIG, home.with_name("backup"))
    return home


def limited(size: int, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )  # fmt: skip


@pytest.mark.parametrize("work", ["backup", "restore", "rekey", "copy", "repair"])
@pytest.mark.parametrize("size", [0, 20 * KIB, 50 * KIB])
def test_a_full_disk_changes_nothing(original: Path, tmp_path: Path, work: str, size: int) -> None:
    home, file = tmp_path / "home", tmp_path / "backup"
    copied(original, home)
    shutil.copy(original.with_name("backup"), file)
    before = file.read_bytes()
    if work == "repair":
        with open(next(home.glob("profiles/*/log.db")), "r+b") as log:
            log.write(b"?" * 4096)
    done = limited(size, CHILD, str(home), str(file), work)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("memoryd.errors.Store"), done.stderr
    assert file.read_bytes() == before
    assert profile_names(home) == ["default"]
    assert not [path.name for path in home.iterdir() if path.name != "profiles"]
    if work == "repair":
        subprocess.run([sys.executable, CHILD, str(home), str(file), work], check=True, capture_output=True)
    with_runtime(home, whole)
