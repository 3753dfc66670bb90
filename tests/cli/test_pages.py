"""What the pages show runs: the tutorial as a whole, and the snippets of the README and of the how-to for embedding."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SNIPPET_LINES = 12


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, cwd=folder, env=environ, check=False)


def test_the_tutorial_runs_as_it_stands(tmp_path: Path) -> None:
    done = shell("\n".join(blocks("docs/tutorial/first-memory.md", "sh")), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    for shown in ("I live in Oslo now.", "My sister Ada visits on 3 July.", "4711", "Bergen", "Booked: 9:40, seat 61."):
        assert shown in done.stdout
    after = done.stdout.rpartition("erased")[2]
    assert "Oslo" not in after
    assert list(tmp_path.iterdir()) == [], "it cleans up"


def snippets() -> list[tuple[str, str]]:
    return [(page, text) for page in ("README.md", "docs/howto/embed.md", "docs/reference/testing.md") for text in blocks(page, "python")]


@pytest.mark.parametrize(("page", "text"), snippets(), ids=lambda part: part.splitlines()[0])
def test_python_snippets_run(page: str, text: str, tmp_path: Path) -> None:
    if "def answer(" in text:  # a web program's handler: the test is its caller
        text += '\nanswer("ada", "I live in Oslo now.")\nprint(answer("ada", "where do I live?"))\nmemory.close()\n'
    done = subprocess.run([sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.strip()


def test_the_readme_has_four_short_snippets(tmp_path: Path) -> None:
    python = blocks("README.md", "python")
    script = next(block for block in blocks("README.md", "sh") if "memoryd recall" in block)
    assert len(python) == 4
    for text in (*python, script):
        assert len(text.splitlines()) <= SNIPPET_LINES
    done = shell(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4711" in done.stdout
    assert done.stdout.endswith("Oslo\n")


def test_the_readme_says_how_to_install_and_test() -> None:
    lines = "\n".join(blocks("README.md", "sh")).splitlines()
    assert {"pipx install memoryd", "uv tool install memoryd", "make demo", "make test", "make check"} <= set(lines)
    assert "make test" in (ROOT / ".ci/run").read_text("utf-8")
