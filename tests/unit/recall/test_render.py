"""What a host reads: dated lines with sources, newest value first, inside a budget; long results in a file."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.core import Hit, fence_marker
from memoryd.recall import clear_spill, cut_end, cut_start, render, spill

MARKER = fence_marker(b"k" * 32)
MAY, JULY = datetime(2026, 5, 4, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)
FAMILIES = "a🇵🇹🇯🇵👩‍👩‍👧‍👦👍🏽e\u0301❤️🏴\U000e0067\U000e0062\U000e007fx"
SEEN = ["a", "🇵🇹", "🇯🇵", "👩‍👩‍👧‍👦", "👍🏽", "e\u0301", "❤️", "🏴\U000e0067\U000e0062\U000e007f", "x"]


def memory(value: str, at: datetime, seq: int, until: datetime | None = None) -> Hit:
    return Hit(
        id="ab" * 16, kind="memory", text=value, score=1.0, at=at, source="local:memory", seq=seq, key="ssh port",
        superseded=until is not None, valid_until=until,
    )


def test_the_newest_value_comes_first_and_the_old_one_has_both_dates() -> None:
    lines = render([memory("22", MAY, 1, JULY), memory("49222", JULY, 2)], marker=MARKER).split("\n")[2:-1]
    assert lines == [
        f"- 2026-07-01 00:00 memory ssh port: 49222 [local:memory {'ab' * 16}]",
        f"- 2026-05-04 00:00 until 2026-07-01, superseded memory ssh port: 22 [local:memory {'ab' * 16}]",
    ]


def test_copies_are_one_line_with_a_count() -> None:
    said = Hit("cd" * 16, "turn", "I live in Lisbon", 1.0, MAY, "local:turn", role="user", copies=9)
    assert "user: I live in Lisbon (9 times) [local:turn cdcd" in render([said], marker=MARKER)


def test_nothing_to_say_is_no_block() -> None:
    assert render([], marker=MARKER) == ""
    assert render([memory("v", MAY, 1)], marker=MARKER, budget=50) == ""


def test_a_long_text_leaves_room_for_others() -> None:
    hits = [Hit(f"{n:032x}", "turn", "word " * 5000, 1.0, MAY, "local:turn", role="user") for n in range(3)]
    block = render([*hits, memory("short", JULY, 9)], marker=MARKER)
    assert len(block) <= 4000
    assert "short" in block
    assert block.count("…") == 3


@pytest.mark.parametrize("limit", range(len(FAMILIES) + 2))
def test_a_cut_keeps_what_is_seen_as_one_character_whole(limit: int) -> None:
    assert "".join(SEEN) == FAMILIES
    starts = ["".join(SEEN[:count]) for count in range(len(SEEN) + 1)]
    ends = ["".join(SEEN[count:]) for count in range(len(SEEN) + 1)]
    assert cut_end(FAMILIES, limit) == max((text for text in starts if len(text) <= limit), key=len)
    assert cut_start(FAMILIES, limit) == max((text for text in ends if len(text) <= limit), key=len)


@given(st.text(st.characters(), max_size=120), st.integers(-3, 130))
def test_a_cut_is_a_part_within_its_limit(text: str, limit: int) -> None:
    assert text.startswith(cut_end(text, limit))
    assert text.endswith(cut_start(text, limit))
    assert len(cut_end(text, limit)) <= max(limit, 0)
    assert len(cut_start(text, limit)) <= max(limit, 0)


def test_a_run_of_marks_without_end_is_cut_all_the_same() -> None:
    assert len(cut_end("e" + "\u0301" * 10_000, 5_000)) == 5_000


@pytest.mark.parametrize("budget", range(200, 460, 7))
def test_every_cut_is_valid_json_and_utf8(budget: int) -> None:
    block = render([Hit("cd" * 16, "turn", FAMILIES * 40 + "\ud83d", 1.0, MAY, "local:turn", role="user")], marker=MARKER, budget=budget)
    assert json.loads(json.dumps(block, ensure_ascii=False).encode()) == block


def test_exactly_at_the_limit_is_unchanged_and_above_goes_to_a_private_file(tmp_path: Path) -> None:
    folder = tmp_path / "spill"
    assert spill("x" * 10_000, folder) == "x" * 10_000
    assert not folder.exists()
    text = "a" * 600 + "m" * 9_000 + "z" * 600
    shown = spill(text, folder)
    (file,) = folder.iterdir()
    assert file.read_text() == text
    assert (shown[:500], shown[-500:]) == ("a" * 500, "z" * 500)
    assert str(file) in shown
    assert len(shown) < 1_500
    assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_spilled_text_is_valid_whatever_it_holds(tmp_path: Path) -> None:
    shown = spill(("\ud83d" + FAMILIES) * 1000, tmp_path)
    shown.encode()
    next(tmp_path.iterdir()).read_text("utf-8")


def test_spilled_files_can_be_cleared(tmp_path: Path) -> None:
    assert clear_spill(tmp_path / "missing") == 0
    for _ in range(3):
        spill("y" * 20_000, tmp_path)
    assert clear_spill(tmp_path) == 3
    assert os.listdir(tmp_path) == []
