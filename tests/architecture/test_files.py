"""What lies where, how long it is, and what stands in none of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP = {
    ".ci", ".gitignore", "LICENSE", "Makefile", "README.md", "pyproject.toml",
    "adapters", "config", "docs", "memoryd", "tests",
}  # fmt: skip
LONGEST = 500
# put together, so that this file does not hold them
WORDS = ["/wor" + "k/", r"\bshare" + "d/", r"\bfact" + "s/", "TO" + "DO", "FIX" + "ME", r"\bDESI" + "GN", r"\bXX" + r"X\b"]
NOWHERE = re.compile("|".join(WORDS))


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [Path(name) for name in done.stdout.decode().split("\0") if name and (ROOT / name).exists()]


def test_the_top_level_is_what_it_is() -> None:
    assert {path.parts[0] for path in tracked()} == TOP


def test_files_are_short() -> None:
    long = {str(path): count for path in tracked() if path.suffix in (".py", ".sql") and (count := _lines(path)) > LONGEST}
    assert not long


def _lines(path: Path) -> int:
    return len((ROOT / path).read_text("utf-8").splitlines())


def test_no_unfinished_or_private_words() -> None:
    found = []
    for path in tracked():
        text = (ROOT / path).read_text("utf-8", errors="replace")
        found += [f"{path}:{number}: {match[0]}" for number, line in enumerate(text.splitlines(), 1) if (match := NOWHERE.search(line))]
    assert not found


def test_the_lock_names_no_place() -> None:
    text = (ROOT / "tests/requirements.lock").read_text("utf-8")
    assert not re.search(r"://|^-|@ ", text, re.MULTILINE)
    names = re.findall(r"^[a-z0-9-]+==\S+", text, re.MULTILINE)
    assert len(names) > 30
    assert all(re.search(rf"^{re.escape(name)}[^#]*?--hash=sha256:[0-9a-f]{{64}}", text, re.MULTILINE) for name in names)
