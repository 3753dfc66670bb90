"""The gate with every odd transcript and payload: refused with a reason and a way out, or allowed and true."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memoryd.hosts._gate_main import answer_in_process
from memoryd.hosts._shelves import Shelves
from memoryd.wire import HookCall, HookReply
from tests.adapters.hooks.archive import Archive
from tests.adapters.hooks.driver import ClaudeHost, CodexHost, fixture, payload

CLAUDE, CODEX, GEMINI = "claude-2.1.332", "codex-0.171.0", "gemini-0.61.0"


def ask(host: str, given: dict[str, Any] | bytes, event: str = "PreCompact", **environment: str) -> HookReply:
    """The gate in this process, as ``python -m memoryd _gate`` has it."""
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    shelves = Shelves()
    try:
        return answer_in_process(HookCall(host, event, "/", environment, data), 20, shelves)
    finally:
        shelves.close()


def claude(transcript: object, **more: Any) -> dict[str, Any]:
    return payload(CLAUDE, "PreCompact-auto", transcript_path=str(transcript), cwd="/w/foo", **more)


def refused(reply: HookReply) -> str:
    assert (reply.code, reply.stdout) == (2, b"")
    reason = reply.stderr.decode()
    assert reason.startswith("BLOCKED_MISSING_PREREQUISITE") and "MEMORYD_GATE" in reason and "gate release" in reason
    assert reason.count("\n") == 1
    return reason


def allowed(reply: HookReply) -> str:
    assert (reply.code, reply.stderr) == (0, b"")
    said = reply.stdout.decode()
    assert not said.startswith("{") and len(said) <= 10_000
    return said


# -- transcripts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "tools", "compacted", "noise", "sidechain", "subagent"])
def test_every_byte_and_every_message_come_back(room: Path, archive: Archive, name: str) -> None:
    file = fixture(CLAUDE, f"{name}.jsonl")
    assert "checkpoint" in allowed(ask("claude", claude(file)))
    (found,) = archive.list()
    assert archive.source(found.id) == file.read_bytes()


def test_what_is_told_apart_in_a_transcript(room: Path, archive: Archive) -> None:
    allowed(ask("claude", claude(fixture(CLAUDE, "compacted.jsonl"))))
    (found,) = archive.list()
    rows = archive.rows(found.id)
    assert [(row["role"], row.get("is_summary", False)) for row in rows] == [
        ("user", False), ("assistant", False), ("assistant", False), ("boundary", False), ("user", True), ("user", False), ("assistant", False),
    ]  # fmt: skip
    assert rows[1]["content"] == "I look at it first." and rows[1]["tools"] == ["Read"] and rows[1]["paths"] == ["/w/foo/test_a.py"]
    assert found.count == 5, "a summary is no evidence, nor is a boundary"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "cannot be read: No such file"),
        (lambda path: path.mkdir(), "no regular file"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_bytes(b"\n \n"), "is empty"),
        (lambda path: path.write_bytes(b"no json at all\nnor here\n"), "holds no readable row"),
        (lambda path: path.write_bytes(b"\x00" * 4096), "holds no readable row"),
        (lambda path: os.mkfifo(path), "no regular file"),
        (lambda path: path.symlink_to("/nowhere"), "cannot be read"),
    ],
    ids=["missing", "directory", "empty", "blank", "text", "zeros", "pipe", "dangling"],
)
def test_a_transcript_that_is_named_and_cannot_be_read_is_refused(room: Path, archive: Archive, make: Any, reason: str) -> None:
    """Never is another session's file taken for it."""
    other = room / "s-2.jsonl"
    other.write_bytes(fixture(CLAUDE, "plain.jsonl").read_bytes())
    allowed(ask("claude", claude(other, session_id="s-2")))
    make(room / "s-1.jsonl")
    assert reason in refused(ask("claude", claude(room / "s-1.jsonl")))
    assert [found.session for found in archive.list()] == ["s-2"]


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"user","uuid":"u-1","message":{"role":"user","content":"kept"}}\n{"type":"assis',
        b'{"type":"user","uuid":"u-1","message":{"role":"user","content":"kept"}}\nbroken\n{"type":"mode"}\n',
        b'[1]\n"text"\n{"type":"user","message":"odd"}\n{"type":"user","message":{"content":{"a":1}}}\n{"type":"assistant"}\n{}\n',
        b'{"type":"user","uuid":7,"timestamp":"..","message":{"role":"user","content":["a",{"type":"text"},{"type":"text","text":5}]}}\n',
        b'{"type":"user","message":{"role":"user","content":"\\ud800"}}\n',
        b"\xef\xbb\xbf{}\n\xff\xfe\n{}\r\n",
    ],
    ids=["half-line", "bad-line", "odd-rows", "odd-parts", "surrogate", "bytes"],
)
def test_an_odd_row_never_refuses_and_comes_back(room: Path, archive: Archive, data: bytes) -> None:
    file = room / "odd.jsonl"
    file.write_bytes(data)
    for host in ("claude", "codex"):
        assert ask(host, claude(file)).code == 0
    for found in archive.list():
        assert archive.source(found.id) == data


def test_a_file_that_grows_while_it_is_read(room: Path, archive: Archive) -> None:
    host = ClaudeHost(room)
    host.write_user("begun")
    ended = threading.Event()

    def grow() -> None:
        while not ended.is_set():
            host.write_assistant("more and more " * 50)
            ended.wait(0.003)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for _ in range(3):
            assert host.compact()[0]
    finally:
        ended.set()
        writer.join()
    assert archive.verified()


def test_a_gate_without_enough_time_refuses_and_the_next_one_goes_on(room: Path, archive: Archive) -> None:
    file, shelves, seconds = room / "s.jsonl", Shelves(), 0.1
    row = {"type": "user", "message": {"role": "user", "content": "x" * 2000}}
    file.write_text("".join(json.dumps(row | {"uuid": f"u-{number}"}) + "\n" for number in range(6000)))
    call = HookCall("claude", "PreCompact", "/", {}, json.dumps(claude(file)).encode())
    replies = [answer_in_process(call, seconds, shelves)]
    while replies[-1].code:
        assert "deadline" in refused(replies[-1])
        seconds *= 2
        replies.append(answer_in_process(call, seconds, shelves))
    shelves.close()
    allowed(replies[-1])
    (found,) = archive.list()
    assert archive.source(found.id) == file.read_bytes()
    assert found.attempts[-1].new_rows < 6000 or len(replies) == 1, "what was kept before was not stored again"


def test_a_transcript_that_has_shrunk_is_refused_until_somebody_lets_it_pass(room: Path, archive: Archive) -> None:
    file = room / "s.jsonl"
    lines = fixture(CLAUDE, "plain.jsonl").read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines))
    allowed(ask("claude", claude(file)))
    os.truncate(file, len(lines[0]))
    assert "has shrunk" in refused(ask("claude", claude(file)))
    assert "has shrunk" in refused(ask("claude", claude(file)))
    archive.gate.release("s-1", once=True)
    assert allowed(ask("claude", claude(file))) == ""
    assert "checkpoint" in allowed(ask("claude", claude(file))), "what the file is now counts from then on"


# -- payloads ----------------------------------------------------------------------------------------------------------------


def test_a_host_that_keeps_no_transcript_is_allowed_and_the_receipt_says_so(room: Path, archive: Archive) -> None:
    assert allowed(ask("claude", claude("/x") | {"transcript_path": None})) == ""
    assert allowed(ask("claude", claude("/x"), CLAUDE_CODE_SKIP_PROMPT_HISTORY="1")) == ""
    assert ask("codex", payload(CODEX, "PreCompact-null")) == HookReply()
    receipts = archive.gate.status().receipts
    assert [receipt["verdict"] for receipt in receipts] == ["nothing-to-archive"] * 3


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (b"", "the payload is empty"),
        (b"not json", "no JSON object"),
        (b"[1]", "no JSON object"),
        (b"\xff\xfe", "no JSON object"),
        (b'{"session_id": "s-1"}', "gives no transcript_path"),
        (b'{"session_id": "s-1", "transcript_path": ""}', "gives no transcript_path"),
        (b'{"session_id": "s-1", "transcript_path": 7}', "gives no transcript_path"),
        (b'{"transcript_path": "/x"}', "names no session"),
        (b'{"session_id": null, "transcript_path": "/x"}', "names no session"),
        (b'{"session_id": "s-1", "transcript_path": "/x\\u0000y"}', "cannot be read"),
    ],
)
def test_a_payload_that_is_not_as_documented_is_refused(room: Path, given: bytes, reason: str) -> None:
    assert reason in refused(ask("claude", given))
    said = json.loads(ask("codex", given).stdout)
    assert set(said) == {"continue", "stopReason"} and reason in said["stopReason"]


def test_unknown_keys_and_a_payload_of_megabytes_are_no_matter(room: Path) -> None:
    host = ClaudeHost(room)
    host.write_user("Keep this")
    done = host.tell("PreCompact", "PreCompact-manual", surprise={"a": [1]}, custom_instructions="x" * 3_000_000)
    assert done.code == 0 and b"checkpoint" in done.out


def test_a_host_that_is_not_known_is_stopped_at_its_gate_only(room: Path) -> None:
    assert ask("kiro", claude("/x")).code == 2
    assert ask("kiro", claude("/x"), "PreCompress").code == 2


# -- once, twice, many -------------------------------------------------------------------------------------------------------


def test_a_host_that_fires_often_has_one_checkpoint_and_a_receipt_for_each(room: Path, archive: Archive) -> None:
    file = room / "s.jsonl"
    file.write_bytes(fixture(CLAUDE, "tools.jsonl").read_bytes())
    os.utime(file, (1_700_000_000, 1_700_000_000))
    told = {allowed(ask("claude", claude(file))) for _ in range(20)}
    assert len(told) == 1
    (found,) = archive.list()
    assert len(found.attempts) <= 2, "an unchanged file is not archived again"
    receipts = archive.gate.status().receipts
    assert [receipt["verdict"] for receipt in receipts] == ["archived"] * 10


def test_two_at_once_make_one_checkpoint(room: Path, archive: Archive) -> None:
    host = ClaudeHost(room)
    host.write_user("Keep this")
    host.write_assistant("Kept.")
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: host.tell("PreCompact", "PreCompact-auto"), range(4)))
    assert {result.code for result in done} == {0}
    assert len(archive.list()) == 1


def test_refusals_are_counted_and_the_way_out_is_named(room: Path, archive: Archive) -> None:
    for _ in range(4):
        reason = refused(ask("claude", claude(room / "missing")))
    assert "refusal 4 in a row" in reason and "memoryd gate release s-1 --once" in reason
    assert archive.gate.status().refusals == {"s-1": 4}
    assert allowed(ask("claude", claude(room / "missing"), MEMORYD_GATE="warn")) == ""
    assert allowed(ask("claude", claude(room / "missing"), MEMORYD_GATE="off")) == ""
    refused(ask("claude", claude(room / "missing"), MEMORYD_GATE="blokc"))
    archive.gate.release("s-1", once=True)
    assert allowed(ask("claude", claude(room / "missing"))) == ""
    refused(ask("claude", claude(room / "missing")))


def test_a_wrong_configuration_refuses_and_names_the_key(room: Path) -> None:
    (room / "home").mkdir()
    (room / "home/memoryd.toml").write_text('[gate]\nmode = "sometimes"\n')
    assert "gate.mode" in refused(ask("claude", claude(fixture(CLAUDE, "plain.jsonl"))))
    assert allowed(ask("claude", claude(fixture(CLAUDE, "plain.jsonl")), MEMORYD_GATE="off")) == ""


def test_the_second_archive_and_the_gate_s_own_mode(room: Path, archive: Archive) -> None:
    (room / "home").mkdir()
    (room / "home/memoryd.toml").write_text(f'[gate]\nfallback_dir = "{room}/second"\n')
    file = fixture(CLAUDE, "plain.jsonl")
    allowed(ask("claude", claude(file)))
    (archive,) = (room / "home/profiles").glob("*/archive.db")
    for name in archive.parent.glob("archive.db*"):
        name.unlink()
    archive.mkdir()
    assert "checkpoint" in allowed(ask("claude", claude(file)))
    assert list((room / "second").rglob("archive.db"))


# -- hosts that differ -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "call", "compacted", "aborted"])
def test_codex_hears_nothing_where_all_is_well_and_one_object_where_not(room: Path, archive: Archive, name: str) -> None:
    file = fixture(CODEX, f"{name}.jsonl")
    given = payload(CODEX, "PreCompact-auto", transcript_path=str(file), cwd="/w/foo")
    assert ask("codex", given) == HookReply()
    (found,) = archive.list()
    assert archive.source(found.id) == file.read_bytes()
    reply = ask("codex", given | {"transcript_path": "/nowhere"})
    assert (reply.code, reply.stderr) == (0, b"")
    said = json.loads(reply.stdout)
    assert set(said) == {"continue", "stopReason"} and said["continue"] is False
    assert not CodexHost(room).is_blocked(type("Done", (), {"code": 2, "out": reply.stdout})()), "exit code 2 would not be heard"


def test_gemini_s_transcript_is_kept_as_it_is_on_every_attempt(room: Path, archive: Archive) -> None:
    given = payload(GEMINI, "PreCompress-auto", transcript_path=str(fixture(GEMINI, "opaque.jsonl")), cwd="/w/foo")
    for _ in range(5):
        assert ask("gemini", given, "PreCompress") == HookReply()
    (found,) = archive.list()
    assert archive.source(found.id) == fixture(GEMINI, "opaque.jsonl").read_bytes()
    assert ask("gemini", given | {"transcript_path": "/nowhere"}, "PreCompress").code == 2


def test_a_dialect_that_is_not_the_host_s_loses_no_byte(room: Path, archive: Archive) -> None:
    """A command line with the wrong name: nothing can be told apart, and all of it is there."""
    file = fixture(CLAUDE, "tools.jsonl")
    assert ask("codex", claude(file)) == HookReply()
    allowed(ask("claude", payload(CODEX, "PreCompact-auto", session_id="t-2", transcript_path=str(fixture(CODEX, "call.jsonl")))))
    found = {info.session: archive.source(info.id) for info in archive.list()}
    assert found == {"s-1": file.read_bytes(), "t-2": fixture(CODEX, "call.jsonl").read_bytes()}


def test_a_gate_that_is_killed_leaves_nothing_half(room: Path, archive: Archive) -> None:
    host = ClaudeHost(room)
    host.write_user("begun")
    for number in range(200):
        host.write_assistant(f"answer {number} " + "word " * 400)
    given = json.dumps(claude(host.transcript)).encode()
    for milliseconds in (20, 60, 90, 120, 150, 180, 220, 260, 320):
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", "memoryd", "_gate", "claude", "PreCompact"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert process.stdin is not None
        with process.stdin as stream:
            stream.write(given)
        try:
            process.wait(milliseconds / 1000)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert host.compact()[0]
    assert archive.verified()
    newest = archive.list()[0]
    assert host.transcript.read_bytes().startswith(archive.source(newest.id) or b"?")


def test_the_gate_in_a_process_of_its_own_has_no_event_loop_and_no_command_line(room: Path) -> None:
    program = (
        "import sys; from memoryd.hosts import gate_main; code = gate_main(['claude', 'PreCompact']); print(file=sys.stderr); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    given = json.dumps(claude(fixture(CLAUDE, "plain.jsonl"))).encode()
    done = subprocess.run([sys.executable, "-c", program], input=given, capture_output=True, check=True)
    assert b"checkpoint" in done.stdout
    assert not {"trio", "click", "structlog", "asyncio", "rich", "memoryd.runtime", "memoryd.cli"} & set(done.stderr.decode().split())
