"""Recall quality on a small set of our own, in the form of the large one that ``make bench-recall`` takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "benchmarks" / "data" / "conversations.json"


def measured(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.benchmarks.locomo", str(DATA), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_right_turns_are_found() -> None:
    result = measured("--json")
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)["figures"]
    assert figures["all"]["questions"] == 34
    assert figures["all"]["R@5"] >= 90
    assert figures["all"]["nDCG@10"] >= 80
    assert figures["temporal"]["R@5"] == 100


def test_the_table_has_every_category_and_a_verdict() -> None:
    shown = measured().stdout
    for word in ("multi-hop", "temporal", "open-domain", "single-hop", "adversarial", "R@20", "MRR", "R@10: bar 79.0"):
        assert word in shown
