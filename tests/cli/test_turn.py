"""``memoryd turn``: lines in, a line out for each, whatever the lines are."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def turn(user: str, assistant: str = "ok", **more: object) -> str:
    return json.dumps({"user": user, "assistant": assistant, **more})


def test_a_turn_is_journaled(memoryd: Run) -> None:
    done = memoryd("turn", "--session", "s1", stdin=turn("I moved to Oslo", turn_id="t1"))
    assert done.code == 0
    answer = done.json
    assert answer == {"state": "journaled", "seq": 1, "event_id": answer["event_id"], "turn_id": "t1", "session": "s1", "reason": ""}
    assert len(answer["event_id"]) == 32


def test_a_repeated_turn_id_records_nothing_new(memoryd: Run) -> None:
    first = memoryd("turn", "--session", "s1", stdin=turn("a", turn_id="t1")).json
    again = memoryd("turn", "--session", "s1", stdin=turn("a", turn_id="t1")).json
    assert again == {**first, "reason": "duplicate"}
    assert memoryd("turn", "--session", "s2", stdin=turn("a", turn_id="t1")).json["seq"] == 2


def test_without_a_session_it_is_a_new_one(memoryd: Run) -> None:
    lines = memoryd("turn", stdin=turn("a") + "\n" + turn("b")).lines
    assert lines[0]["session"] == lines[1]["session"]
    assert memoryd("turn", stdin=turn("c")).json["session"] != lines[0]["session"]


def test_each_line_is_answered_before_the_next_is_read() -> None:
    process = subprocess.Popen([sys.executable, "-m", "memoryd", "turn"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for number in range(1, 6):
        process.stdin.write(turn(f"line {number}").encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["seq"] == number
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    process.stdout.close()


def test_a_bad_line_does_not_end_the_others(memoryd: Run) -> None:
    lines = [
        turn("one"), "{", "", '"text"', "[]", "5", "null", turn(""), '{"user": "x", "assitant": "y"}', '{"user": 5, "assistant": "y"}',
        turn("t", turn_id=7), turn("c", created_at="yesterday"), turn("two"),
    ]  # fmt: skip
    answered = turn("", "")
    done = memoryd("turn", "--session", "s", stdin="\n".join([*lines, answered]))
    assert done.code == 1
    good = [line["seq"] for line in done.lines if "state" in line]
    assert good == [1, 2, 3]
    bad = {line["line"]: line["error"] for line in done.lines if "error" in line}
    assert sorted(bad) == [2, 4, 6, 7, 9, 10, 11, 12, 14]
    assert {error["type"] for error in bad.values()} == {"InvalidInput"}
    assert bad[9]["field"] == "assitant"
    assert bad[10]["field"] == "user"
    assert bad[12]["field"] == "created_at"
    assert bad[14]["field"] == "turn"


@pytest.mark.parametrize(
    "document",
    [
        '{"user": "a", "assistant": "b"}',
        '{"user": "a",\n "assistant": "b"}',
        '{\n  "user": "a",\n  "assistant": "b"\n}\n',
        '[{"user": "a"}]',
        '[\n  {"user": "a",\n "assistant": "b"}\n]',
        '\ufeff{"user": "a"}\r\n',
    ],
)
def test_one_document_in_any_shape(memoryd: Run, document: str) -> None:
    done = memoryd("turn", stdin=document)
    assert done.code == 0
    assert done.json["state"] == "journaled"


def test_an_array_is_several_turns(memoryd: Run) -> None:
    assert [line["seq"] for line in memoryd("turn", stdin=f"[{turn('a')}, {turn('b')}]").lines] == [1, 2]


def test_a_broken_first_line_is_only_that(memoryd: Run) -> None:
    done = memoryd("turn", stdin='{"user": "a"\n' + turn("b") + "\n" + turn("c"))
    assert [line.get("seq") for line in done.lines] == [None, 1, 2]
    assert done.lines[0]["line"] == 1


def test_any_text(memoryd: Run) -> None:
    texts = ["\0", "\ud800 alone", "\u2028", "汉字 ไทย 🙂", "\x1b[31m", "x" * 10_000_000]
    done = memoryd("turn", "--session", "s", stdin="\n".join(turn(text) for text in texts))
    assert [line["state"] for line in done.lines] == ["journaled"] * len(texts)


def test_bytes_that_are_no_text(memoryd: Run) -> None:
    done = memoryd("turn", stdin=b'{"user": "\xff"}\n' + b"[" * 100_000 + b"\n" + b"9" * 10_000 + b"\n" + turn("good").encode())
    assert done.code == 1
    assert [line.get("state", "bad") for line in done.lines] == ["bad", "bad", "bad", "journaled"]


def test_nothing_in_nothing_out(memoryd: Run) -> None:
    done = memoryd("turn", stdin="\n \n")
    assert (done.code, done.out) == (0, "")


@pytest.mark.parametrize("name", ["a/b", "..", "\0", "s" * 500, "*", "ü", "it's", "-x"])
def test_any_session_name(memoryd: Run, name: str) -> None:
    assert memoryd("turn", stdin=turn("a", session=name)).json["session"] == name


def test_a_name_that_is_too_long(memoryd: Run) -> None:
    done = memoryd("turn", "--session", "s" * 501, stdin=turn("a"))
    assert done.code == 1
    assert "session" in done.err + done.out


def test_null_backend_records_nothing(memoryd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_MEMORY_BACKEND", " NULL ")
    done = memoryd("turn", stdin=turn("a"))
    assert done.code == 0
    assert done.json["state"] == "off"


class Locked:
    """Another process holds the log's write lock for a while."""

    PROGRAM = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
"""

    def __init__(self, log: Path) -> None:
        command = [sys.executable, "-c", self.PROGRAM, str(log)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"locked\n"

    def release(self) -> None:
        self._process.communicate(b"\n", timeout=30)


def test_a_locked_log_holds_the_turn_and_says_so(memoryd: Run, private_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_DEADLINES_CLOSE", "1")
    memoryd("turn", "--session", "s", stdin=turn("first"))
    (log,) = private_home.rglob("log.db")
    locked = Locked(log)
    done = memoryd("turn", "--session", "s", "--wait", "0.2", stdin=turn("second"))
    assert (done.code, done.json["state"], done.json["seq"]) == (1, "held", None)
    locked.release()
    found = memoryd("recall", "second", "--json").json
    assert found["hits"][0]["text"] == "second", "what was held at the end is taken in at the next start"


def test_a_lock_that_goes_in_time_is_only_a_delay(private_home: Path, memoryd: Run) -> None:
    memoryd("turn", "--session", "s", stdin=turn("first"))
    (log,) = private_home.rglob("log.db")
    command = [sys.executable, "-m", "memoryd", "turn", "--session", "s", "--wait", "30"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(turn("second").encode() + b"\n")
    process.stdin.flush()
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["seq"] == 2
    locked = Locked(log)
    process.stdin.write(turn("third").encode() + b"\n")
    process.stdin.flush()
    time.sleep(0.3)
    locked.release()
    answer = json.loads(process.stdout.readline())
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    process.stdout.close()
    assert (answer["state"], answer["seq"]) == ("journaled", 3)
