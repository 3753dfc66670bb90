"""The page that takes a stranger from an empty package to a green suite is followed word for word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/howto/write-a-backend.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def script() -> str:
    """The page as one script: its commands, and its files where it says that they are."""
    parts = []
    for language, text in BLOCK.findall(PAGE.read_text("utf-8")):
        if language == "sh":
            parts.append(text)
        else:
            name = text.partition("\n")[0].removeprefix("# ")
            parts.append(f"cat > {name} <<'END OF FILE'\n{text}END OF FILE\n")
    return "".join(parts)


def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    command = ["bash", "-euo", "pipefail", "-c", script()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    before, *after = [line for line in lines if line.startswith("notebook\t")]
    assert "has no function create(context)" in before
    assert [line.split("\t")[2:4] for line in after] == [["package", "yes"]]
    counts = re.findall(r"^notebook: (\d+) passed, (\d+) failed, (\d+) skipped$", done.stdout, re.MULTILINE)
    assert len(counts) == 3
    assert len(set(counts)) == 1, "each check ran each time"
    assert all(failed == skipped == "0" for _, failed, skipped in counts)
    assert f"{counts[0][0]} passed ()" in lines
    assert "sent 1 events to notebook, up to 1" in lines
    assert any(line.startswith("primary notebook (SQLite) ok") for line in lines)
    assert "Bergen" in lines
