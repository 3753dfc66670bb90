"""What the pages about backups and profiles show runs, one command after another."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_pages import ROOT, blocks, shell

BACKUP, PROFILES = "docs/howto/back-up-and-repair.md", "docs/howto/profiles.md"


def test_backing_up_restoring_and_repairing_run_as_they_stand(tmp_path: Path) -> None:
    script = "\n".join(blocks(BACKUP, "sh"))
    done = shell(script, tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.count("Oslo\n") == 2, "as it was on Monday, and in the other profile"
    assert "kept " in done.stdout
    assert done.stdout.endswith("nothing is wrong\nnothing is wrong\n")


def test_profiles_run_as_they_stand(tmp_path: Path) -> None:
    done = shell("\n".join(blocks(PROFILES, "sh")), tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "copied profile work to experiment: 1 events\nOslo\nrenamed profile experiment to trial\ndeleted profile trial" in done.stdout
    assert "renewed the key of profile work" in done.stdout


def test_every_remedy_of_repair_is_on_its_page() -> None:
    text = (ROOT / BACKUP).read_text("utf-8")
    for word in ("profile.json", "profile.key", "memory.db", "quarantine/", "stores.json", "--rebuild", "--dry-run"):
        assert word in text
