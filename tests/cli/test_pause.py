"""``memoryd pause`` and ``resume``, and that a pause is never overlooked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_a_pause_is_seen_everywhere_until_it_ends(memoryd: Run) -> None:
    assert memoryd("pause").out == "recording is paused until memoryd resume\n"
    assert "recording of agent programs is paused since" in memoryd("status").out
    assert memoryd("status", "--json").json["paused"]["until"] is None
    assert "warn\trecording\t" in memoryd("doctor").out
    until = memoryd("pause", "--for", "2h", "--json").json["until"]
    assert until.endswith("+00:00")
    assert memoryd("resume").out == "recording goes on\n"
    assert memoryd("status", "--json").json["paused"] is None
    assert "recording" not in memoryd("doctor").out
    assert memoryd("resume", "--json").json == {"paused": False, "was_paused": False}


@pytest.mark.parametrize("time", ["0", "-1", "2 weeks", "1h30m", "x", ""])
def test_a_wrong_duration_changes_nothing(memoryd: Run, private_home: Path, time: str) -> None:
    assert memoryd("pause", "--for", time).code == 64
    assert not private_home.exists()


def test_what_a_person_types_is_kept_in_a_pause(memoryd: Run) -> None:
    """It is about what agents tell; a person's own command means what it says."""
    memoryd("pause")
    memoryd("store", "city", "Oslo")
    assert memoryd("get", "city").out == "Oslo\n"
