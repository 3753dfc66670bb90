"""``memoryd checkpoint read``: messages by number, for people and programs."""

from __future__ import annotations

import json

import pytest

from memoryd.cli._checkpoint import _span
from tests.cli.conftest import Run

ROWS = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two\nlines", "tools": ["Read", "Edit"]},
    {"role": "user", "content": "a summary", "is_summary": True},
    {"role": "user", "content": [{"type": "text", "text": "four"}]},
    {"role": "assistant", "content": None},
]


@pytest.fixture
def id(memoryd: Run) -> str:
    made = memoryd("checkpoint", "create", "--session", "s1", "--json", stdin=json.dumps(ROWS))
    return str(made.json["id"])


def test_messages_are_read_by_number(memoryd: Run, id: str) -> None:
    everything = memoryd("checkpoint", "read", id).out
    assert everything == "--- 1 user\none\n--- 2 assistant\ntwo\nlines\n(Read, Edit)\n--- 3 summary\na summary\n--- 4 user\nfour\n--- 5 assistant\n\n"
    found = memoryd("checkpoint", "read", id[:12], "--range", "2:3", "--json").json
    assert found["of"] == 5 and [one["number"] for one in found["messages"]] == [2, 3]
    assert found["messages"][0]["message"] == ROWS[1]


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [("1:", [1, 2, 3, 4, 5]), (":2", [1, 2]), ("3", [3]), ("-2:", [4, 5]), ("-2:-2", [4]), ("4:99", [4, 5]), ("9:", []), ("0:1", [1]), (":", [1, 2, 3, 4, 5])],
)
def test_ranges(wanted: str, numbers: list[int]) -> None:
    assert [1, 2, 3, 4, 5][slice(*_span(wanted))] == numbers


def test_what_is_no_range_or_no_checkpoint(memoryd: Run, id: str) -> None:
    assert memoryd("checkpoint", "read", id, "--range", "x").code == 64
    assert memoryd("checkpoint", "read", "0" * 16).code == 1


def test_a_forgotten_message_says_so(memoryd: Run, id: str) -> None:
    memoryd("turn", "--session", "s1", stdin=json.dumps({"user": "one", "assistant": "two\nlines"}))
    memoryd("forget", "--session", "s1", "--yes")
    found = memoryd("checkpoint", "read", id)
    assert found.code in (0, 1)
    assert "one" not in found.out
