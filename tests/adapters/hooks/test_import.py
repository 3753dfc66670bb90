"""Import of what hosts have kept of their own, and of OpenAI-style conversations."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryd.core import Config, Turn
from memoryd.errors import InvalidInput
from memoryd.hosts import find_source, import_history, source_names
from memoryd.hosts._import import TakenIn
from tests.adapters.hooks.driver import ClaudeHost, fixture
from tests.adapters.hooks.test_sessions import turns_of

Memoryd = Callable[..., Any]


def take(room: Path, source: str, *paths: Path, **more: Any) -> TakenIn:
    return import_history(room / "home", "default", Config(), find_source(source), paths, user="ada", **more)


def said(source: str, path: Path) -> list[tuple[str, str]]:
    return [(event.user, event.assistant) for event in find_source(source).events(path) if isinstance(event, Turn)]


def test_a_folder_is_taken_in_once_in_order_with_its_times(room: Path, memoryd: Memoryd) -> None:
    folder = room / "projects/-w-foo"
    folder.mkdir(parents=True)
    later, earlier = ClaudeHost(folder, "s-2"), folder / "s-1.jsonl"
    for number in range(3):
        later.write_user(f"Request {number}")
        later.write_assistant(f"Answer {number}")
    later.transcript.write_text(later.transcript.read_text().replace("2026-11-29T10", "2026-11-30T10"))
    earlier.write_bytes(fixture("claude-2.1.332", "compacted.jsonl").read_bytes())
    subagents = folder / "s-1/subagents"
    subagents.mkdir(parents=True)
    shutil.copy(fixture("claude-2.1.332", "subagent.jsonl"), subagents / "agent-a-1.jsonl")
    (folder / "notes.txt").write_text("no transcript")
    progress: list[tuple[int, int]] = []

    assert take(room, "claude", room / "projects", dry_run=True) == TakenIn(6, 6)
    assert not (room / "home/profiles").exists() or turns_of(memoryd) == []
    done = take(room, "claude", room / "projects", on_progress=lambda done, total: progress.append((done, total)))
    assert done == TakenIn(6, 6) and progress[-1] == (6, 6)
    assert take(room, "claude", room / "projects") == TakenIn(6, 0)
    assert take(room, "claude", room / "projects", dry_run=True) == TakenIn(6, 0)

    os.environ["MEMORYD_USER"] = "ada"
    try:
        turns = turns_of(memoryd)
    finally:
        del os.environ["MEMORYD_USER"]
    assert [turn["user"] for turn in turns] == ["Fix the flaky test in foo", "Now run it again", "", "Request 0", "Request 1", "Request 2"]
    assert turns[0]["at"] == "2026-11-29T10:00:00+00:00" and turns[0]["scope"]["session"] == "s-1"
    assert turns[2]["scope"]["agent"] == "subagent"
    assert {turn["scope"]["workspace"] for turn in turns} >= {"/w/foo"}


def test_what_hooks_recorded_and_a_forked_copy_are_not_taken_in_again(room: Path, memoryd: Memoryd) -> None:
    host = ClaudeHost(room)
    for number in range(3):
        host.turn(f"Request {number}", f"Answer {number}")
    assert len(turns_of(memoryd)) == 3
    copy = room / "fork.jsonl"
    copy.write_bytes(host.transcript.read_bytes())
    more = ClaudeHost(room / "more", "s-9")
    more.transcript = copy
    more.write_user("Only in the fork")
    more.write_assistant("Indeed.")
    memoryd("import", "claude", str(host.transcript), str(copy))
    assert [turn["user"] for turn in turns_of(memoryd)] == ["Request 0", "Request 1", "Request 2", "Only in the fork"]


def test_a_session_that_grew_adds_what_is_new(room: Path) -> None:
    file = room / "s.jsonl"
    lines = fixture("claude-2.1.332", "plain.jsonl").read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    assert take(room, "claude", file) == TakenIn(1, 1)
    file.write_bytes(b"".join(lines))
    assert take(room, "claude", file) == TakenIn(2, 1)


def test_codex_says_its_session_in_its_first_line(room: Path) -> None:
    (event, _) = find_source("codex").events(fixture("codex-0.171.0", "compacted.jsonl"))
    assert isinstance(event, Turn)
    assert (event.scope.session, event.scope.workspace, event.turn_id) == ("t-1", "/w/foo", "codex:msg_1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]', [("a", "b")]),
        ('{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "a"}]}]}', [("a", "")]),
        ('[{"messages": [{"role": "user", "content": "a"}]}, {"messages": [{"role": "user", "content": "b"}]}]', [("a", ""), ("b", "")]),
        ('{"role": "user", "content": "a"}\n{"role": "assistant", "content": "b"}\n{"role": "assistant", "content": "c"}\n', [("a", "b\n\nc")]),
        ('{"messages": [{"role": "user", "content": "a"}]}\nbroken\n{"messages": [{"role": "assistant", "content": "b"}]}\n', [("a", ""), ("", "b")]),
        ("[]", []), ("{}", []), ("3", []), ('[1, null, "x"]', []), ('{"messages": [null, 1, {}]}', []),
    ],
)  # fmt: skip
def test_conversations_of_every_shape(tmp_path: Path, text: str, expected: list[tuple[str, str]]) -> None:
    (tmp_path / "c.json").write_text(text)
    assert said("openai-json", tmp_path / "c.json") == expected
    assert said("openai-json", tmp_path) == expected


def test_a_conversation_keeps_its_name_and_times(room: Path) -> None:
    file = room / "c.json"
    messages = [
        {"role": "user", "content": "a", "created_at": "2025-01-01T00:00:00Z"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c", "timestamp": 1_750_000_000}, {"role": "assistant", "content": "d"},
    ]  # fmt: skip
    file.write_text(json.dumps([{"id": "talk", "messages": messages}]))
    events = [event for event in find_source("openai-json").events(file) if isinstance(event, Turn)]
    assert [(event.at, event.scope.session) for event in events] == [(1_735_689_600_000_000, "talk"), (1_750_000_000_000_000, "talk")]
    assert take(room, "openai-json", file) == TakenIn(2, 2)
    file.write_text(json.dumps([{"id": "talk", "messages": [*messages, {"role": "user", "content": "e"}]}]))
    assert take(room, "openai-json", file) == TakenIn(3, 1)


def test_what_is_kept_out_of_memory_is_not_imported(room: Path) -> None:
    config = _excluding("/w")
    done = import_history(
        room / "home", "default", config, find_source("claude"), [fixture("claude-2.1.332", "plain.jsonl")], user="ada"
    )
    assert done == TakenIn(2, 0, kept_out=2)


def _excluding(*patterns: str) -> Config:
    import attrs

    config = Config()
    return attrs.evolve(config, capture=attrs.evolve(config.capture, exclude=patterns))


def test_what_cannot_be_read_is_told_before_anything_is_kept(room: Path, memoryd: Memoryd) -> None:
    with pytest.raises(InvalidInput, match="no such file"):
        take(room, "claude", room / "missing")
    with pytest.raises(InvalidInput, match="neither JSON"):
        (room / "x").write_bytes(b"\xff\xfe\x00")
        take(room, "openai-json", room / "x")
    assert {"claude", "codex", "openai-json"} <= set(source_names())
    assert b"say where" not in memoryd("import", "claude", code=64)
    memoryd("import", "--dry-run", code=64)
    memoryd("import", "unheard", "a", "b", code=64)
