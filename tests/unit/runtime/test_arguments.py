"""Arguments that no call can use: each names its field, and nothing is written."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memoryd
from memoryd.blocking import Memory
from memoryd.errors import ConfigError, InvalidInput

TIMES = ("soon", math.nan, 1e20, -5, object(), True)
SECONDS = (-1, math.nan, "1", True)
COUNTS = (-1, 1.5, "3", True, math.nan)
NAMES = ("", 5, b"s", "x" * 501)
Call = Callable[[Memory, Any], object]

WRONG: list[tuple[str, Call, tuple[Any, ...]]] = [
    ("as_of", lambda memory, value: memory.recall("x", as_of=value), TIMES),
    ("as_of", lambda memory, value: memory.history("k", value), TIMES),
    ("since", lambda memory, value: memory.forget(since=value), TIMES),
    ("until", lambda memory, value: memory.forget(until=value), TIMES),
    ("timeout", lambda memory, value: memory.flush(value), SECONDS),
    ("timeout", lambda memory, value: memory.drain(value), SECONDS),
    ("timeout", lambda memory, value: memory.catch_up(value), SECONDS),
    ("limit", lambda memory, value: memory.recall("x", limit=value), COUNTS),
    ("limit", lambda memory, value: memory.query("x", limit=value), COUNTS),
    ("limit", lambda memory, value: memory.list_memories(limit=value), COUNTS),
    ("limit", lambda memory, value: memory.checkpoints(limit=value), COUNTS),
    ("offset", lambda memory, value: memory.list_memories(offset=value), COUNTS),
    ("session", lambda memory, value: memory.recall("x", session=value), NAMES),
    ("session", lambda memory, value: memory.checkpoints(value), NAMES),
    ("session", lambda memory, value: memory.forget(session=value), NAMES),
    ("key", lambda memory, value: memory.forget(key=value), NAMES),
    ("labels", lambda memory, value: memory.recall("x", labels=value), ("agent", [], {5: "a"})),
    ("labels.agent", lambda memory, value: memory.recall("x", labels={"agent": value}), NAMES),
    ("everything", lambda memory, value: memory.forget(everything=value), ("no", 1, None)),
    ("id", lambda memory, value: memory.forget(value), ("", "zz", "00" * 15, "00" * 17, 5)),
    ("edit", lambda memory, value: memory.edit("00" * 16, "x", **value), ({"user": "y"}, {"assistant": "y"})),
    ("private", lambda memory, value: memoryd.scope(private=value).__enter__(), ("yes", 1, 0)),
]


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory(tmp_path) as opened, memoryd.scope(user="ann", session="s1"):
        opened.store("k", "v")
        yield opened


def test_what_cannot_be_used_names_its_field(memory: Memory) -> None:
    for field, call, values in WRONG:
        for value in values:
            with pytest.raises(InvalidInput) as caught:
                call(memory, value)
            assert caught.value.field == field, (field, value)
    log = memory.status().log
    assert log is not None
    assert log.head == 1, "nothing was written"


def test_what_is_huge_is_no_error(memory: Memory) -> None:
    assert memory.list_memories(offset=10**30) == []
    assert len(memory.list_memories(limit=10**30)) == 1
    assert [version.value for version in memory.history("k", "9999-12-31")] == ["v"]
    assert memory.history("k", 0) == []


def test_a_turn_is_not_edited_away(memory: Memory) -> None:
    both, answer = memory.sync_turn("question", "answer").event_id, memory.sync_turn("", "only an answer").event_id
    for id, texts in ((both, {"user": "", "assistant": ""}), (answer, {"assistant": ""}), (answer, {"value": ""})):
        with pytest.raises(InvalidInput, match="both be empty"):
            memory.edit(id, **texts)
    memory.edit(both, user="")
    hit = memory.find(both)
    assert hit is not None
    assert hit.text == "answer"


def test_a_home_that_is_no_path() -> None:
    for home in (5, ["x"], "", "a\0b"):
        with pytest.raises(ConfigError, match="path of a directory"):
            Memory(home)  # type: ignore[arg-type]
