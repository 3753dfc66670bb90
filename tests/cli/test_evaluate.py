"""``memoryd evaluate``."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

DATA = str(Path(__file__).parents[1] / "benchmarks/data/conversations.json")


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go; none may be left."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_the_report_as_json(memoryd: Run, scratch: Path, private_home: Path) -> None:
    done = memoryd("evaluate", "--json", "--faults", "--dataset", DATA)
    report = done.json
    assert (done.code, done.err) == (0, "")
    assert report["backends_evaluated"] == 2
    (local,) = (one for one in report["results"] if one["name"] == "local")
    assert local["store_success"]
    assert {"relevance", "reliability", "cost"} == set(report["beside"]["local"])
    assert list(scratch.iterdir()) == []
    assert not private_home.exists(), "nothing was written"


def test_without_a_terminal_each_backend_is_a_line(memoryd: Run) -> None:
    lines = memoryd("evaluate", "--backend", "local", "--backend", "null", "--faults").out.splitlines()
    assert lines[0].startswith("local (SQLite)\t")
    assert lines[1].startswith("null (disabled)\t")
    assert lines[1].split("\t")[3] == "NOT RECOMMENDED"
    assert "null: Baseline: keeps nothing" in lines
    assert "local: disk full while writing: passed" in lines
    assert lines[-1].startswith("best backend: local (SQLite), score ")


def test_people_see_a_table(tmp_path: Path) -> None:
    main, other = pty.openpty()
    command = [sys.executable, "-m", "memoryd", "evaluate", "--backend", "local"]
    environ = {**os.environ, "COLUMNS": "200", "TERM": "dumb"}
    with os.fdopen(main, "rb", buffering=0) as screen:
        done = subprocess.run(command, stdout=other, stderr=subprocess.PIPE, env=environ, timeout=60, check=False)
        os.close(other)
        shown = screen.read(65536).decode()
    assert (done.returncode, done.stderr) == (0, b"")
    for word in ("backend", "score", "grade", "local (SQLite)", "bytes given"):
        assert word in shown


@pytest.mark.parametrize(("extra", "said"), [(("--backend", "nope"), "nope"), (("--dataset", "DIR/data.json"), "data.json: is not JSON")])
def test_a_wrong_word_ends_in_one_line(memoryd: Run, scratch: Path, extra: tuple[str, ...], said: str) -> None:
    (scratch / "data.json").write_text("{")
    done = memoryd("evaluate", *(word.replace("DIR", str(scratch)) for word in extra))
    assert done.code == 64
    assert said in done.err
    assert done.stdout == b""


def test_a_cloud_that_is_asked_for_and_not_configured(memoryd: Run) -> None:
    done = memoryd("evaluate", "--backend", "honcho", "--json")
    assert done.code == 0
    (honcho,) = done.json["results"]
    assert (honcho["score"], honcho["grade"], honcho["recommendation"]) == (0, "F", "NOT AVAILABLE")
    assert done.json["recommendation"] == "no viable backend"
    assert json.dumps(honcho["notes"]).startswith('["Backend not available"')
