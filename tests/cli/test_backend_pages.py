"""What the pages about backends and their tool show runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd import tool
from tests.cli.test_pages import ROOT, blocks, shell

CHOOSE, TOOL = "docs/howto/choose-a-backend.md", "docs/reference/tool.md"


@pytest.mark.parametrize("page", [CHOOSE, TOOL])
def test_python_snippets_run(page: str, tmp_path: Path) -> None:
    for text in blocks(page, "python"):
        done = subprocess.run([sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.strip()


def test_the_backend_for_any_user_is_as_the_reference_shows(tmp_path: Path) -> None:
    (text,) = (text for text in blocks("docs/reference/python.md", "python") if "get_memory_backend" in text)
    shown = text.replace("backend.is_available(),", "print(backend.is_available(),").replace("is_cloud  #", "is_cloud)  #")
    done = subprocess.run([sys.executable, "-W", "error", "-c", shown], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.stdout, done.stderr) == ("True local (SQLite) False\n", "")


def test_choosing_runs_as_it_stands(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests/benchmarks/data/conversations.json", tmp_path)
    done = shell("\n".join(blocks(CHOOSE, "sh")), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout.splitlines()[-1])
    assert "relevance" in report["beside"]["local"]
    assert "Backend not available" in done.stdout


def test_the_tools_calls_run_as_they_stand(tmp_path: Path) -> None:
    done = shell("\n".join(blocks(TOOL, "sh")), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["ok"] for answer in answers] == [True] * 3
    assert (answers[1]["value"], answers[2]["count"]) == ("Oslo", 1)


def test_the_page_of_the_tool_names_every_action_and_parameter() -> None:
    text = (ROOT / TOOL).read_text("utf-8")
    for name in (*tool.ACTIONS, *tool.SCHEMA["properties"]):
        assert f"`{name}`" in text


def test_the_page_of_choosing_names_every_key_of_a_report() -> None:
    from tests.unit.core.test_evaluate import KEYS

    text = (ROOT / CHOOSE).read_text("utf-8")
    for key in {*KEYS, "timestamp", "backends_evaluated", "evaluations", "results", "recommendation", "beside"}:
        assert f"`{key}`" in text
