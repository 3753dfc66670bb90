"""Whole sessions: a driver plays the host, hooks run as processes, and nothing that a compaction cut is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

from memoryd.errors import InvalidInput
from memoryd.hosts import _answer
from memoryd.wire import HookCall
from tests.adapters.hooks.archive import Archive
from tests.adapters.hooks.driver import ClaudeHost, CodexHost, Host, patient, read_only
from tests.daemon.harness import Daemon, until

Memoryd = Callable[..., Any]


def turns_of(memoryd: Memoryd) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in memoryd("export").splitlines()]
    return [row for row in rows if row.get("kind") == "turn"]


def sixty_turns(host: Host, room: Path) -> list[tuple[bool, bytes, bytes]]:
    """Sixty turns with three compactions, the second with a store that cannot be written: (compacted, what was said, the file then)."""
    found: list[tuple[bool, bytes, bytes]] = []
    for number in range(60):
        host.turn(f"Request {number} about zebra{number}", f"Answer {number}: done.")
        if number in (15, 50):
            before = host.transcript.read_bytes()
            found.append((*host.compact(), before))
        if number == 30:
            with read_only(room / "home"):
                before = host.transcript.read_bytes()
                found.append((*host.compact(), before))
    return found


def check_archive(memoryd: Memoryd, archive: Archive, found: list[tuple[bool, bytes, bytes]]) -> None:
    """Each boundary that was let pass has a checkpoint that gives every byte and every message before it, and none for a summary."""
    ids = [info.id for info in archive.list()]
    archived = [archive.source(id) or b"" for id in ids]
    for compacted, _, before in found:
        assert before in archived or not compacted
    newest = memoryd("checkpoint", "restore", ids[0], "--full")
    assert newest == archived[0] and archive.verified()
    said = [row["content"] for row in archive.rows(ids[0]) if row["role"] == "user" and not row.get("is_summary")]
    assert [text if isinstance(text, str) else text[0]["text"] for text in said] == [f"Request {n} about zebra{n}" for n in range(60)]


@pytest.mark.parametrize("kind", [ClaudeHost, CodexHost])
def test_sixty_turns_and_three_compactions_without_a_daemon(
    room: Path, memoryd: Memoryd, archive: Archive, monkeypatch: pytest.MonkeyPatch, kind: type[Host]
) -> None:
    """With the very commands that an install has written."""
    monkeypatch.setenv("HOME", str(room))
    host = kind(room)
    memoryd("install", "claude-code" if kind is ClaudeHost else "codex")
    host.use_settings(room)
    host.tell("SessionStart", "SessionStart-resume")
    found = sixty_turns(host, room)
    host.tell("SessionEnd", "SessionEnd" if kind is CodexHost else "SessionEnd-other")
    assert [compacted for compacted, _, _ in found] == [True, False, True]
    refused = found[1][1].decode()
    assert "BLOCKED_MISSING_PREREQUISITE" in refused and "cannot be written" in refused
    assert "memoryd gate release" in refused and "MEMORYD_GATE" in refused
    assert all(done.silent for event, done in host.hooks if event != "PreCompact")

    kept = turns_of(memoryd)
    assert [(turn["user"], turn["assistant"]) for turn in kept] == host.said
    assert {turn["scope"]["platform"] for turn in kept} == {host.name}
    assert {turn["scope"]["workspace"] for turn in kept} == {str(host.cwd)}
    check_archive(memoryd, archive, found)
    assert not (room / "home/hooks.spool").exists()


@pytest.mark.parametrize("kind", [ClaudeHost, CodexHost])
def test_a_session_with_a_daemon_is_recalled_and_rebriefed(room: Path, memoryd: Memoryd, kind: type[Host]) -> None:
    host = kind(room)
    patient(host)
    with Daemon(room):
        host.turn("We deploy on Tuesdays. Never touch the file prod.ini.", "Understood.")
        for number in range(5):
            host.turn(f"Request {number} about zebra{number}", f"Answer {number}.")
        host.write_user("And what about the last one?")
        compacted, told = host.compact()
        assert compacted
        assert (b"checkpoint" in told) == (kind is ClaudeHost)
        (brief,) = host.injected
        text = json.loads(brief)["hookSpecificOutput"]["additionalContext"] if kind is CodexHost else brief.decode()
        assert "last request (not answered yet" in text and "And what about the last one?" in text
        assert "Never touch the file prod.ini." in text and "memoryd checkpoint read" in text
        assert len(text) <= 4000
        recalled = host.tell("UserPromptSubmit", prompt="when do we deploy?")
        assert recalled.code == 0 and b"Tuesdays" in recalled.out
        host.tell("SessionEnd", "SessionEnd" if kind is CodexHost else "SessionEnd-other")
    assert all(done.err == b"" for _, done in host.hooks)
    assert [turn["user"] for turn in turns_of(memoryd)] == [*(user for user, _ in host.said), "And what about the last one?"]


# -- a daemon that is no help ------------------------------------------------------------------------------------------------

_SHORT_REPLY = b"R\x00\x00\x00\x09\x00\x00"
_WRONG_FRAME = b"R\x00\x00\x00\x09\x07\xff\xff\xff\xff\x00\x00\x00\x00"


@contextmanager
def false_daemon(path: Path, reply: bytes | None, backlog: bool = True) -> Iterator[None]:
    """Accepts and sends ``reply``, then closes; None: says nothing for ever."""
    path.parent.mkdir(parents=True, exist_ok=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(64)
    ended = threading.Event()
    held: list[socket.socket] = []

    def serve() -> None:
        while not ended.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            held.append(connection)
            if reply is not None:
                try:
                    connection.sendall(reply)
                except OSError:
                    pass
                connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for connection in held:
            connection.close()
        thread.join(5)
        path.unlink()


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        (ClaudeHost, None), (CodexHost, None), (ClaudeHost, b""), (CodexHost, b"garbage that is no frame"), (ClaudeHost, _SHORT_REPLY),
        (ClaudeHost, _WRONG_FRAME), (CodexHost, b'{"jsonrpc": "2.0"}\n'),
    ],
    ids=["hangs", "hangs-codex", "closes", "garbage", "short", "wrong-lengths", "another-protocol"],
)  # fmt: skip
def test_with_a_daemon_that_is_no_help_nothing_is_said_and_nothing_is_lost(
    room: Path, memoryd: Memoryd, kind: type[Host], reply: bytes | None
) -> None:
    host = kind(room)
    with false_daemon(room / "run/m.sock", reply):
        host.tell("SessionStart", "SessionStart-resume")
        host.turn("Where is the zebra?", "In the attic.")
        host.tell("PostCompact", trigger="auto")
        host.tell("SessionEnd", "SessionEnd" if kind is CodexHost else "SessionEnd-other")
    assert all(done.silent for _, done in host.hooks), host.hooks
    assert [(turn["user"], turn["assistant"]) for turn in turns_of(memoryd)] == host.said


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_daemon_that_is_gone_or_hangs_takes_the_payloads_in_when_it_is_back(room: Path, memoryd: Memoryd, how: str) -> None:
    host = ClaudeHost(room)
    with Daemon(room) as daemon:
        host.turn("First request", "First answer")
        if how == "killed":
            daemon.process.kill()
            daemon.process.wait()
        else:
            os.kill(daemon.pid, signal.SIGSTOP)
        host.turn("Where is the zebra?", "In the attic.")
        assert all(done.silent for event, done in host.hooks if event != "UserPromptSubmit"), host.hooks
        assert host.hooks[-1][1].silent and host.hooks[-2][1].silent
        assert (room / "home/hooks.spool").exists()
        if how == "killed":
            daemon.start()
        else:
            daemon.process.kill()
            os.kill(daemon.pid, signal.SIGCONT)
            daemon.process.wait()
            daemon.start()
        until(lambda: not (room / "home/hooks.spool").exists() and not list((room / "home").glob("hooks.taking*")))
    assert [(turn["user"], turn["assistant"]) for turn in turns_of(memoryd)] == host.said


async def test_a_transcript_that_is_too_large_for_the_daemon_is_left_to_the_hook_s_own_gate(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a reply the hook program does what it does without a daemon."""
    monkeypatch.setattr(_answer, "LARGEST", 10)
    host = ClaudeHost(room)
    host.write_user("Keep this")
    given = {"session_id": "s-1", "transcript_path": str(host.transcript), "trigger": "auto"}

    def opened(home: Path | None, profile: str) -> NoReturn:
        raise AssertionError("a gate needs no runtime")

    with pytest.raises(InvalidInput, match="too large"):
        await _answer.answer_hook(HookCall("claude", "PreCompact", "/", {}, json.dumps(given).encode()), opened)


def test_the_gate_waits_for_no_daemon_that_closes_or_lies(room: Path, memoryd: Memoryd) -> None:
    for number, reply in enumerate((b"", b"garbage", _SHORT_REPLY, _WRONG_FRAME)):
        host = ClaudeHost(room, f"s-{number}")
        host.write_user("Keep this")
        with false_daemon(room / "run/m.sock", reply):
            compacted, told = host.compact()
        assert compacted and b"checkpoint" in told
    assert memoryd("checkpoint", "list", "--json")["count"] == 4


def test_a_session_whose_end_nobody_told_is_found_by_the_next_one(room: Path, memoryd: Memoryd) -> None:
    """The host was killed: no Stop, no SessionEnd.  Another session begins, and what the first one said is recorded."""
    first, second, busy = ClaudeHost(room, "s-1"), ClaudeHost(room, "s-2"), ClaudeHost(room, "s-3")
    for host in (first, second, busy):
        patient(host)
    with Daemon(room):
        for host in (first, busy):
            host.tell("UserPromptSubmit", prompt="Where is the zebra?")
            host.write_user(f"Where is the zebra of {host.session}?")
            host.write_assistant("In the attic.")
        os.utime(first.transcript, (1_790_000_000, 1_790_000_000))
        second.tell("SessionStart", "SessionStart-startup")
        second.tell("SessionStart", "SessionStart-startup")
    assert [(turn["scope"]["session"], turn["user"]) for turn in turns_of(memoryd)] == [("s-1", "Where is the zebra of s-1?")]


@pytest.mark.parametrize("serving", [False, True], ids=["alone", "daemon"])
def test_profiles_and_users_of_two_agents_stay_apart(room: Path, memoryd: Memoryd, serving: bool) -> None:
    """One agent runs under another profile, one under another user; a third has neither."""
    hosts = {
        "work": ClaudeHost(room, "s-1", {"MEMORYD_PROFILE": "work"}),
        "ada": ClaudeHost(room, "s-2", {"MEMORYD_USER": "ada"}),
        "": ClaudeHost(room, "s-3"),
    }

    def play() -> None:
        for name, host in hosts.items():
            patient(host)
            host.turn(f"Zebra of {name or 'nobody'}", "Noted.")
            assert host.compact()[0]

    if serving:
        with Daemon(room):
            play()
    else:
        play()
        until(lambda: (room / "home/hooks.spool").read_bytes().count(b'"Stop"') == 3)
    memoryd("recall", "zebra")  # what waits is taken in for every profile

    def said(*arguments: str) -> list[str]:
        rows = [json.loads(line) for line in memoryd("export", *arguments).splitlines()]
        return [row["user"] for row in rows if row.get("kind") == "turn"]

    assert said("--profile", "work") == ["Zebra of work"]
    assert said("--user", "ada") == ["Zebra of ada"]
    assert said() == ["Zebra of nobody"]
    assert memoryd("checkpoint", "list", "--json", "--profile", "work")["count"] == 1
    assert [found["session"] for found in memoryd("checkpoint", "list", "--json", "--user", "ada")["checkpoints"]] == ["s-2"]


@pytest.mark.soak
def test_a_daemon_that_hangs_costs_a_compaction_seconds_and_no_byte(room: Path, archive: Archive) -> None:
    """The hook waits for its daemon half of its time, then asks a gate of its own; all of it ends before the host's timeout."""
    host = ClaudeHost(room)
    host.write_user("Keep this")
    before = host.transcript.read_bytes()
    with Daemon(room) as daemon:
        os.kill(daemon.pid, signal.SIGSTOP)
        assert host.compact()[0]
        os.kill(daemon.pid, signal.SIGCONT)
    gate = next(done for event, done in host.hooks if event == "PreCompact")
    assert b"checkpoint" in gate.out
    assert any(archive.source(info.id) == before for info in archive.list())
