"""Turns from a transcript: once, complete, whatever order events and lines come in."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import InvalidInput
from memoryd.hosts import Said, find_dialect, read_lines, turns_in
from memoryd.hosts import _transcript as transcript
from memoryd.hosts._state import Place
from memoryd.hosts._turns import take_turns
from tests.adapters.hooks.driver import fixture

CLAUDE, CODEX = find_dialect("claude"), find_dialect("codex")


def user(id: str, text: str) -> dict[str, Any]:
    return {"type": "user", "uuid": id, "message": {"role": "user", "content": text}}


def answer(id: str, text: str, message: str = "") -> dict[str, Any]:
    return {"type": "assistant", "uuid": id, "message": {"id": message, "role": "assistant", "content": [{"type": "text", "text": text}]}}


class Session:
    """A transcript that is written bit by bit, and what was recorded of it; the log passes over ids that it has."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = Place()
        self.log: dict[str, Said] = {}
        self.accepts = True
        path.touch()

    def write(self, *rows: Mapping[str, Any] | bytes) -> None:
        with self.path.open("ab") as stream:
            stream.writelines(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)

    def take(self, settled: bool = True, said: str = "") -> None:
        self.place, self.cut = take_turns(
            CLAUDE, str(self.path), self.place, self.record, lambda text: text, settled=settled, said=said
        )

    def record(self, said: Said) -> bool:
        if self.accepts:
            self.log.setdefault(said.id, said)
        return self.accepts

    @property
    def turns(self) -> list[tuple[str, str]]:
        return [(said.user, said.assistant) for said in self.log.values()]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path / "s.jsonl")


def test_a_turn_is_recorded_once_however_often_it_is_told(session: Session) -> None:
    session.write(user("u-1", "one"), answer("a-1", "two"))
    for _ in range(3):
        session.take()
    session.write(user("u-2", "three"), answer("a-2", "four"), answer("a-3", "five"))
    for _ in range(3):
        session.take()
    assert session.turns == [("one", "two"), ("three", "four\n\nfive")]
    assert list(session.log) == ["u-1", "u-2"]


def test_what_an_answer_gains_after_it_was_done_is_a_turn_of_its_own(session: Session) -> None:
    session.write(user("u-1", "one"), answer("a-1", "two"))
    session.take()
    session.write(answer("a-2", "and more"))
    session.take()
    session.take()
    assert session.turns == [("one", "two"), ("", "and more")]


def test_a_question_that_was_recorded_alone_gets_its_answer(session: Session) -> None:
    session.write(user("u-1", "one"))
    session.take()
    session.write(answer("a-1", "two"))
    session.take()
    assert session.turns == [("one", ""), ("", "two")]


def test_a_message_that_the_file_does_not_have_yet_is_taken_from_the_payload_once(session: Session) -> None:
    session.write(user("u-1", "one"), answer("a-1", "first part"))
    session.take(said="the last part")
    assert session.turns == [("one", "first part\n\nthe last part")]
    session.write(answer("a-2", "the last", "m"), answer("a-3", " part", "m"), user("u-2", "next"), answer("a-4", "done"))
    session.take(said="done")
    assert session.turns == [("one", "first part\n\nthe last part"), ("next", "done")]


def test_a_message_of_an_earlier_turn_is_not_put_to_a_later_one(session: Session) -> None:
    """The hook of the first answer came late: the user had asked again already."""
    session.write(user("u-1", "one"), answer("a-1", "the answer", "m"), answer("a-2", "in two blocks", "m"), user("u-2", "next"))
    session.take(said="the answer\nin two blocks")
    assert session.turns == [("one", "the answer\n\nin two blocks"), ("next", "")]


def test_half_a_line_waits_for_its_rest_and_a_bad_one_is_passed_over(session: Session) -> None:
    session.write(user("u-1", "one"), b"not json\n", b"[1]\n", b"\n")
    whole = json.dumps(answer("a-1", "two")).encode() + b"\n"
    session.write(whole[:30])
    session.take(settled=False)
    assert session.turns == []
    session.write(whole[30:])
    session.take()
    assert session.turns == [("one", "two")]


def test_a_last_line_without_its_end_counts_when_it_is_whole(session: Session) -> None:
    session.write(user("u-1", "one"), json.dumps(answer("a-1", "two")).encode())
    session.take()
    assert session.turns == [("one", "two")]
    session.write(b"\n", user("u-2", "three"))
    session.take(settled=False)
    session.write(answer("a-2", "four"))
    session.take()
    assert session.turns == [("one", "two"), ("three", "four")]


def test_a_log_that_takes_nothing_now_gets_all_of_it_later(session: Session) -> None:
    session.write(user("u-1", "one"), answer("a-1", "two"), user("u-2", "three"), answer("a-2", "four"))
    session.accepts = False
    session.take()
    session.accepts = True
    session.take()
    assert session.turns == [("one", "two"), ("three", "four")]


def test_a_file_that_was_replaced_or_cut_is_read_from_its_beginning(session: Session) -> None:
    session.write(user("u-1", "one"), answer("a-1", "two"))
    session.take()
    session.path.write_bytes(b"")
    session.write(user("u-9", "other"), answer("a-9", "file"))
    session.take()
    assert session.turns == [("one", "two"), ("other", "file")]


def test_nothing_but_a_question_or_calls_of_tools_is_no_error(session: Session) -> None:
    call = {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/x"}}
    session.write({"type": "assistant", "uuid": "a-0", "message": {"id": "m", "role": "assistant", "content": [call]}})
    session.take()
    assert session.turns == []
    session.write(b"", user("u-1", "  "))
    session.take()
    assert session.turns == []


def test_a_summary_is_nobody_s_word_and_ends_the_turn_before_it(tmp_path: Path) -> None:
    found = [said for said, _ in turns_in(CLAUDE, str(fixture("claude-2.1.332", "compacted.jsonl")), lambda record: None)]
    assert [(said.user, said.assistant) for said in found] == [
        ("Fix the flaky test in foo", "I look at it first.\n\nThe sleep is the cause."), ("Now run it again", "It passes."),
    ]  # fmt: skip
    found = [said for said, _ in turns_in(CODEX, str(fixture("codex-0.171.0", "compacted.jsonl")), lambda record: None)]
    assert [(said.user, said.assistant) for said in found] == [
        ("Fix the flaky test", "The sleep is the cause."), ("Now run it again", "It passes."),
    ]  # fmt: skip


def test_a_subagent_is_named_and_its_task_is_no_user_s_word(tmp_path: Path) -> None:
    mixed = [said for said, _ in turns_in(CLAUDE, str(fixture("claude-2.1.332", "sidechain.jsonl")), lambda record: None)]
    assert [(said.user, said.assistant, said.agent) for said in mixed] == [
        ("", "Two loose ends.", "a-1"), ("Fix the flaky test in foo", "The sleep is the cause.", ""),
    ]  # fmt: skip
    own = [said for said, _ in turns_in(CLAUDE, str(fixture("claude-2.1.332", "subagent.jsonl")), lambda record: None, "explorer")]
    assert [(said.user, said.assistant, said.agent) for said in own] == [("", "I look around.\n\nTwo loose ends.", "explorer")]
    codex = [said for said, _ in turns_in(CODEX, str(fixture("codex-0.171.0", "plain.jsonl")), lambda record: None, "reviewer")]
    assert [(said.user, said.assistant, said.agent) for said in codex] == [("", "The sleep is the cause.", "reviewer")]


def test_what_the_host_put_in_is_no_user_s_word() -> None:
    found = [said for said, _ in turns_in(CLAUDE, str(fixture("claude-2.1.332", "noise.jsonl")), lambda record: None)]
    assert [(said.user, said.assistant) for said in found] == [("Fix the flaky test in foo", "The sleep is the cause.")]
    found = [said for said, _ in turns_in(CODEX, str(fixture("codex-0.171.0", "plain.jsonl")), lambda record: None)]
    assert [(said.user, said.assistant) for said in found] == [("Fix the flaky test", "The sleep is the cause.")]


def test_a_line_longer_than_any_message_is_passed_over(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "MAX_LINE", 1000)
    session.write(user("u-1", "one"), b"x" * 10_000 + b"\n", answer("a-1", "two"), b"y" * 5_000)
    session.take()
    assert session.turns == [("one", "two")]
    assert [line.record is None for line in read_lines(str(session.path))] == [False, True, False, True]


def test_a_path_that_is_no_file_is_told(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", "", "a\0b"):
        with pytest.raises(InvalidInput):
            list(read_lines(str(path)))


@given(st.lists(st.sampled_from("UATBcCs"), max_size=24), st.integers(0, 10_000))
def test_however_a_session_is_cut_into_events_it_is_recorded_whole_and_once(tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int) -> None:
    """U and A write, T writes half a line first, B is a compaction, c and C take (C settled), s says the last message ahead of the
    file."""
    session, luck = Session(tmp_path_factory.mktemp("t") / "s.jsonl"), random.Random(seed)
    words, held = list[str](), b""
    for number, step in enumerate(steps):
        session.write(held)
        held = b""
        match step:
            case "U":
                words.append(f"user{number}")
                session.write(user(f"u-{number}", words[-1]))
            case "A" | "s":
                words.append(f"answer{number}")
                line = json.dumps(answer(f"a-{number}", words[-1])).encode() + b"\n"
                if step == "s" and any(word.startswith("user") for word in words):
                    session.take(said=words[-1])
                session.write(line)
            case "T":
                words.append(f"answer{number}")
                line = json.dumps(answer(f"a-{number}", words[-1])).encode() + b"\n"
                cut = luck.randrange(len(line) - 1)
                session.write(line[:cut])
                held = line[cut:]
                session.take(settled=False)
            case "B":
                session.write({"type": "system", "subtype": "compact_boundary", "uuid": f"b-{number}"})
            case _:
                session.take(settled=step == "C")
    session.write(held)
    session.take()
    session.take()
    told = " ".join(f"{one} {two}" for one, two in session.turns).split()
    assert sorted(told) == sorted(words), "every word once"


@pytest.mark.soak
def test_a_transcript_of_a_gigabyte_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    output = {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": "x" * 250_000}]}}
    with path.open("w") as stream:
        for number in range(4200):
            for row in (user(f"u-{number}", f"request {number}"), output, answer(f"a-{number}", f"answer {number}")):
                stream.write(json.dumps(row) + "\n")
    assert path.stat().st_size > 1_000_000_000
    program = (
        "import resource, sys; from memoryd.hosts import find_dialect, turns_in; "
        "print(sum(1 for _ in turns_in(find_dialect('claude'), sys.argv[1], lambda record: None)), "
        "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, check=True, text=True)
    turns, kilobytes = map(int, done.stdout.split())
    assert turns == 4200
    assert kilobytes < 150_000
