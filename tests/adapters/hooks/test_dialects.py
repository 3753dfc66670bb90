"""Each payload of each host, answered as its contract says; what is claimed of a host is no more than it does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryd.hosts import Dialect, find_dialect
from memoryd.wire import HookReply
from tests.adapters.hooks.archive import Archive
from tests.adapters.hooks.driver import FIXTURES, ClaudeHost, CodexHost, Host, patient
from tests.adapters.hooks.test_sessions import turns_of
from tests.daemon.harness import Daemon, until

Memoryd = Callable[..., Any]
PAYLOADS = sorted(FIXTURES.glob("*/*.json"))


def names(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def dialect_of(path: Path) -> Dialect:
    return find_dialect(path.parent.name.partition("-")[0])


@pytest.mark.parametrize("path", PAYLOADS, ids=names)
def test_every_payload_is_understood(path: Path) -> None:
    given = json.loads(path.read_text())
    heard = dialect_of(path).hear(given["hook_event_name"], given, {})
    assert heard.kind != "other" and heard.session == given["session_id"] and not heard.problem
    assert heard.cwd == "CWD"
    expected = given["agent_transcript_path"] if heard.kind == "agent-turn" else given["transcript_path"]
    assert heard.transcript == expected
    assert heard.why == (given.get("trigger") or given.get("source") or given.get("reason") or "")


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
@pytest.mark.parametrize("event", ["PreCompact", "PreCompress", "Stop", "SessionStart", "Unheard", ""])
def test_no_payload_and_no_record_raises(name: str, event: str) -> None:
    dialect = find_dialect(name)
    odd: list[Any] = [None, 0, "", [], {}, [{}], {"a": []}, "x" * 1000]
    for value in odd:
        keys = ("session_id", "transcript_path", "cwd", "trigger", "prompt", "last_assistant_message", "agent_transcript_path", "agent_id")
        dialect.hear(event, dict.fromkeys(keys, value), {})
        for kind in ("user", "assistant", "system", "response_item", "compacted", value):
            for inner in odd:
                body = {"role": "user", "content": inner, "id": value, "type": "message", "arguments": inner}
                for record in (
                    {"type": kind, "message": value, "payload": value, "uuid": value, "timestamp": value},
                    {"type": kind, "message": body, "payload": body, "uuid": value, "timestamp": "..", "metadata": value},
                    {"type": kind, "message": body | {"role": "assistant", "content": [inner, {"type": "tool_use", "input": inner}]}},
                    {"type": kind, "payload": {"type": "function_call", "arguments": "[1", "name": value}},
                ):
                    dialect.row(record)
                    dialect.time(record)


def test_what_is_claimed_of_a_host_is_what_it_does() -> None:
    claude, codex, gemini = (find_dialect(name) for name in ("claude", "codex", "gemini"))
    assert claude.capability() == claude.capability("2.1.332") == claude.capability("2.1.105") == "hard-veto"
    assert claude.capability("2.1.104") == claude.capability("1.0.48") == "observe-only"
    assert codex.capability() == "hard-veto"
    assert gemini.capability() == gemini.capability("0.61.0") == "observe-only"


@pytest.mark.parametrize("reason", ["plain", 'with "quotes" and \\', "ünïcode \u2028 \ud800", "two\nlines", "x" * 50_000])
def test_a_refusal_is_in_the_words_that_the_host_honours(reason: str) -> None:
    for name in ("claude", "gemini"):
        reply = find_dialect(name).refuse("PreCompact", reason)
        assert reply.code == 2 and reply.stdout == b"" and reply.stderr
    reply = find_dialect("codex").refuse("PreCompact", reason)
    assert (reply.code, reply.stderr) == (0, b"")
    said = json.loads(reply.stdout)
    assert said["continue"] is False and set(said) == {"continue", "stopReason"} and len(said["stopReason"]) <= 2000


def test_what_is_injected_keeps_to_the_limit_of_the_host() -> None:
    for event in ("SessionStart", "UserPromptSubmit"):
        assert len(find_dialect("claude").inject(event, "ü" * 30_000).stdout.decode()) == 10_000
        said = json.loads(find_dialect("codex").inject(event, "ü" * 30_000).stdout)["hookSpecificOutput"]
        assert (said["hookEventName"], len(said["additionalContext"])) == (event, 10_000)
    assert find_dialect("codex").inject("SessionStart", "") == find_dialect("gemini").inject("SessionStart", "x") == HookReply()


def contract(host: Host, event: str, done: Any) -> None:
    """The table of what each event may answer where all is well."""
    assert done.code == 0 and done.err == b"", (event, done)
    if event in ("SessionStart", "UserPromptSubmit"):
        assert len(done.out.decode()) <= 10_000 + 200
        if host.name == "codex" and done.out:
            json.loads(done.out)
    elif event in ("PreCompact", "PreCompress"):
        assert not done.out.startswith(b"{") and (host.name == "claude" or done.out == b"")
    else:
        assert done.out == b""


@pytest.mark.parametrize("kind", [ClaudeHost, CodexHost])
def test_every_event_with_a_daemon_keeps_its_contract(room: Path, memoryd: Memoryd, kind: type[Host]) -> None:
    host = kind(room)
    patient(host)
    host.write_user("Where is the zebra?")
    host.write_assistant("In the attic.")
    with Daemon(room):
        for path in sorted((FIXTURES / f"{host.name}-{host.version}").glob("*.json")):
            event = json.loads(path.read_text())["hook_event_name"]
            more = {"transcript_path": None} if path.stem.endswith("-null") else {}
            contract(host, event, host.tell(event, path.stem, **more, agent_transcript_path=str(host.folder / "none.jsonl")))
    assert [(turn["user"], turn["assistant"]) for turn in turns_of(memoryd)][0] == ("Where is the zebra?", "In the attic.")


def test_a_subagent_is_recorded_under_its_name(room: Path, memoryd: Memoryd) -> None:
    host = ClaudeHost(room)
    own = room / "agent-a-1.jsonl"
    own.write_bytes((FIXTURES / "claude-2.1.332/subagent.jsonl").read_bytes())
    host.write_user("Where is the zebra?")
    patient(host)
    with Daemon(room):
        assert host.tell("SubagentStop", agent_transcript_path=str(own)).silent
        assert host.tell("SubagentStop", agent_transcript_path=str(own)).silent
    (turn,) = turns_of(memoryd)
    assert (turn["user"], turn["scope"]["agent"], turn["scope"]["session"]) == ("", "explorer", "s-1")
    assert "Two loose ends." in turn["assistant"]


def test_a_compaction_that_the_gate_was_not_asked_about_is_filled_in(room: Path, archive: Archive) -> None:
    """The hook before it did not run; the one after it sees to it that nothing is missing."""
    host = ClaudeHost(room)
    patient(host)
    host.write_user("Where is the zebra?")
    host.write_assistant("In the attic.")
    with Daemon(room):
        host.tell("PostCompact", trigger="auto")
    (found,) = archive.list()
    assert archive.source(found.id) == host.transcript.read_bytes()
    assert found.attempts[-1].trigger == "PostCompact"


def test_a_compaction_that_no_hook_was_told_of_is_found_and_listed(room: Path, archive: Archive) -> None:
    """Of three compactions the host told of the first and the last only."""
    host = ClaudeHost(room)
    patient(host)
    with Daemon(room):
        host.turn("One", "Two")
        assert host.compact()[0]
        host.turn("Three", "Four")
        host.append({**host._line("system", subtype="compact_boundary", content="Conversation compacted"), "parentUuid": None})
        host.turn("Five", "Six")
        assert host.compact()[0]
        host.turn("Seven", "Eight")
    triggers = [receipt["trigger"] for receipt in archive.gate.status().receipts]
    assert [trigger for trigger in triggers if trigger != "PostCompact"] == ["auto", "missed-compaction", "auto"]
    assert (archive.source(archive.list()[0].id) or b"").count(b"Three") == 1


# -- what is kept out --------------------------------------------------------------------------------------------------------


def keep_out_by_pause(room: Path, host: Host, memoryd: Memoryd) -> None:
    memoryd("pause")


def keep_out_by_setting(room: Path, host: Host, memoryd: Memoryd) -> None:
    (room / "home").mkdir(exist_ok=True)
    (room / "home/memoryd.toml").write_text('[capture]\nexclude = ["project"]\n')


def keep_out_by_file(room: Path, host: Host, memoryd: Memoryd) -> None:
    (host.cwd / ".memoryd-ignore").touch()


def keep_out_by_variable(room: Path, host: Host, memoryd: Memoryd) -> None:
    host.env["MEMORYD_PRIVATE"] = "1"


def keep_out_by_default(room: Path, host: Host, memoryd: Memoryd) -> None:
    host.env["MEMORYD_CAPTURE_PRIVATE"] = "true"
    (room / "home").mkdir(exist_ok=True)
    (room / "home/memoryd.toml").write_text("[capture]\nprivate = true\n")


WAYS = [keep_out_by_pause, keep_out_by_setting, keep_out_by_file, keep_out_by_variable, keep_out_by_default]


def written(folder: Path, words: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and words in path.read_bytes()]


@pytest.mark.parametrize(
    ("way", "serving"), [*((way, False) for way in WAYS), *((way, True) for way in (keep_out_by_setting, keep_out_by_variable))]
)
def test_nothing_of_what_is_kept_out_is_written_anywhere(
    room: Path, memoryd: Memoryd, archive: Archive, way: Any, serving: bool
) -> None:
    host = ClaudeHost(room)
    way(room, host, memoryd)
    words = "Zebra in the attic"

    def play() -> None:
        host.tell("SessionStart", "SessionStart-startup")
        host.turn(words, f"Indeed a {words}")
        assert host.compact()[0], "it never blocks: there is nothing to archive"
        host.tell("SessionEnd", "SessionEnd-other")

    if serving:
        patient(host)
        with Daemon(room):
            play()
    else:
        play()
    memoryd("recall", "zebra")
    assert written(room / "home", words.encode()) == []
    assert archive.list() == []


def test_what_is_not_kept_out_is_spooled_although_something_else_is(room: Path, memoryd: Memoryd) -> None:
    host = ClaudeHost(room)
    (room / "home").mkdir()
    (room / "home/memoryd.toml").write_text('[capture]\nexclude = ["elsewhere"]\n')
    host.turn("Where is the zebra?", "In the attic.")
    assert all(done.silent for _, done in host.hooks)
    spool = room / "home/hooks.spool"
    until(lambda: spool.exists() and spool.read_bytes().count(b"last_assistant_message") == 1)
    assert [turn["user"] for turn in turns_of(memoryd)] == ["Where is the zebra?"]


def test_what_was_said_in_a_pause_is_passed_over_for_ever(room: Path, memoryd: Memoryd, archive: Archive) -> None:
    host = ClaudeHost(room)
    (room / "home").mkdir()
    (room / "home/pauses.json").write_text(json.dumps([[1_795_946_408_000_000, 1_795_946_415_000_000]]))  # the second turn
    host.turn("Before it", "Yes.")
    host.turn("Said in the pause", "Secret.")
    host.turn("After it", "Again.")
    assert host.compact()[0]
    assert [turn["user"] for turn in turns_of(memoryd)] == ["Before it", "After it"]
    (found,) = archive.list()
    source = archive.source(found.id) or b""
    assert b"Before it" in source and b"After it" in source and b"Said in the pause" not in source and b"Secret" not in source
