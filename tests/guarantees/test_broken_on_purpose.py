"""Each guarantee's module fails when its guarantee is broken on purpose: a copy of the source, one line changed, the module run.

Only ``make soak`` runs this.  A mutant is (guarantee's module, file, the line as it is, the line broken).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MUTANTS = {
    "a turn is called journaled without being written": (
        "test_g1_accepted_means_kept.py",
        "memoryd/journal/_journal.py",
        "self.last_seq = seq = self._writer.insert(_APPEND, row)",
        "self.last_seq = seq = self.last_seq + 1",
    ),
    "what is held at close is dropped": (
        "test_g1_accepted_means_kept.py",
        "memoryd/journal/_journal.py",
        "for step in (self.spool_held, self.barrier):",
        "for step in (self.barrier,):",
    ),
    "the idempotency key is ignored": (
        "test_g2_once.py",
        "memoryd/runtime/_ingest.py",
        'key = None if turn_id is None else turn_key(self._kernel.profile.key, scope, check_name("turn_id", turn_id))',
        "key = None",
    ),
    "the log is read by the clock": (
        "test_g3_in_order.py",
        "memoryd/journal/queries.sql",
        "FROM event WHERE seq > ? ORDER BY seq LIMIT ?",
        "FROM event WHERE seq > ? ORDER BY at LIMIT ?",
    ),
    "a bug in a task ends the runtime": (
        "test_g4_never_in_the_way.py",
        "memoryd/runtime/_supervise.py",
        'if on_bug == "raise":',
        'if on_bug != "never":',
    ),
    "recall waits for the projection for ever": (
        "test_g4_never_in_the_way.py",
        "memoryd/runtime/_progress.py",
        "with trio.move_on_after(timeout):\n            while self.seq < seq:",
        "with trio.move_on_after(1e9):\n            while self.seq < seq:",
    ),
    "the gate lets a failed archive pass": (
        "test_g5_gate_fails_closed.py",
        "memoryd/checkpoint/_gate.py",
        'if mode == "warn":',
        'if mode != "never":',
    ),
    "a checkpoint is anybody's": (
        "test_g6_isolation.py",
        "memoryd/runtime/_checkpoint.py",
        "if info.user != user:",
        "if info.user is None:",
    ),
    "a private session is recorded": (
        "test_g6_isolation.py",
        "memoryd/runtime/_ingest.py",
        "return _OFF_PRIVATE if self.is_private(scope) else None",
        "return _OFF_PRIVATE if self.is_private(scope) is None else None",
    ),
    "files may be read by others": (
        "test_g7_private_by_default.py",
        "memoryd/store/_sync.py",
        "PRIVATE_FILE = 0o600",
        "PRIVATE_FILE = 0o644",
    ),
    "our own block is stored again": (
        "test_g8_recall_is_data.py",
        "memoryd/runtime/_ingest.py",
        "if self._marker in said or self._marker in answered:",
        'if "no such marker" in said:',
    ),
    "a slot answers any query": (
        "test_g8_recall_is_data.py",
        "memoryd/runtime/_prefetch.py",
        "if slot is None or slot.query != query:",
        "if slot is None:",
    ),
    "a failed barrier is retried into a success": (
        "test_g9_status_tells_the_truth.py",
        "memoryd/store/_sync.py",
        'self._problem = "an earlier sync failed and no checkpoint has succeeded since; check the disk"',
        "self._problem = None",
    ),
    "held events are not counted": (
        "test_g9_status_tells_the_truth.py",
        "memoryd/runtime/_status.py",
        "held=journal.held,",
        "held=0,",
    ),
}


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_the_guarantees_module_notices(tmp_path: Path, name: str) -> None:
    module, file, as_it_is, broken = MUTANTS[name]
    copy = tmp_path / "copy"
    for folder in ("memoryd", "adapters", "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    source = copy / file
    text = source.read_text("utf-8")
    assert as_it_is in text, f"{file} has changed: adapt this mutant"
    source.write_text(text.replace(as_it_is, broken, 1), "utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{copy}:{copy / 'adapters'}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/guarantees/{module}"]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1, done.stdout[-2000:]
    assert " failed" in done.stdout
    assert "ImportError" not in done.stdout
