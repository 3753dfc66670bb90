"""``memoryd demo`` shows what it promises."""

from __future__ import annotations

from tests.cli.conftest import Run


def test_the_four_steps(memoryd: Run) -> None:
    done = memoryd("demo", "--json")
    steps = done.json["steps"]
    assert [step["name"] for step in steps] == ["ACCEPTED", "RECALLED", "REFUSED", "RESTORED"]
    assert all(step["ok"] for step in steps), steps
    assert done.code == 0


def test_for_people_each_step_is_a_line(memoryd: Run) -> None:
    lines = memoryd("demo").out.splitlines()
    assert [line.split()[0] for line in lines] == ["ACCEPTED", "RECALLED", "REFUSED", "RESTORED"]
    assert "BLOCKED_MISSING_PREREQUISITE" in lines[2]
