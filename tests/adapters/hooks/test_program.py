"""The hook program by itself: what it imports, where it looks, how it ends."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memoryd.core import profile_folder
from memoryd.settings import resolve_home, resolve_socket
from memoryd.wire import HookCall, HookReply
from tests.adapters.hooks.driver import HOOK, ClaudeHost, full_disk
from tests.adapters.hooks.test_sessions import false_daemon

RUN = [sys.executable, "-I", "-S", str(HOOK)]


def test_it_imports_what_costs_nothing() -> None:
    tree = ast.parse(HOOK.read_text())
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported == {"sys", "posix", "time", "_signal", "_socket"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    bare = subprocess.run([sys.executable, "-I", "-S", "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True)
    assert {"posix", "time", "_signal"} <= set(bare.stdout.split()), "they are there before any program begins"


PLACES: list[dict[str, str]] = [
    {"HOME": "/h"},
    {"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"},
    {"HOME": "/h", "XDG_DATA_HOME": "relative", "XDG_STATE_HOME": "relative", "XDG_RUNTIME_DIR": "relative"},
    {"HOME": "/h", "MEMORYD_HOME": "/m/x y", "MEMORYD_SOCKET": "/m/söck"},
    {"HOME": "/h", "MEMORYD_HOME": "~/m", "MEMORYD_SOCKET": "~/s"},
    {"HOME": "/h", "MEMORYD_HOME": "", "MEMORYD_SOCKET": "", "XDG_RUNTIME_DIR": ""},
]


@pytest.mark.parametrize("environment", PLACES)
def test_it_looks_where_memoryd_does(environment: dict[str, str]) -> None:
    program = f"import sys; sys.path.insert(0, {str(HOOK.parent)!r}); import hook; print(hook.memoryd_home(), hook.socket_path())"
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, env=environment, check=True, cwd="/")
    expected = [os.fsencode(resolve_home(None, environment)), os.fsencode(resolve_socket(None, environment))]
    assert done.stdout.decode() == f"{expected[0]!r} {expected[1]!r}\n"


def test_it_knows_the_folder_of_the_default_profile() -> None:
    sys.path.insert(0, str(HOOK.parent))
    try:
        import hook
    finally:
        sys.path.remove(str(HOOK.parent))
    assert hook.DEFAULT_PROFILE.decode() == f"/profiles/{profile_folder('default')}"
    call = HookCall("claude", "Stop", os.getcwd(), {}, b"{}")
    assert HookCall.decode(hook.packed("claude", "Stop", b"{}")[5:]).stdin == call.stdin
    assert hook.parsed(HookReply(3, b"out", b"err").encode()) == (3, b"out", b"err")


@pytest.mark.parametrize("arguments", [[], ["claude"], ["claude", "Unheard"], ["", ""], ["nobody", "Stop"]])
def test_what_is_no_gate_ends_well_whatever_it_is_given(room: Path, arguments: list[str]) -> None:
    for stdin in (b"", b"not json", b"\xff\xfe", b"x" * 3_000_000):
        done = subprocess.run([*RUN, *arguments], input=stdin, capture_output=True, check=False, cwd=room)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_deleted_working_directory_and_closed_streams_are_no_matter(room: Path) -> None:
    gone = room / "gone"
    gone.mkdir()
    shell = f"cd '{gone}' && rmdir '{gone}' && exec '{sys.executable}' -I -S '{HOOK}' claude Stop <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", shell], check=False).returncode == 0


@pytest.mark.parametrize(("event", "code"), [("Stop", 0), ("PreCompact", 2)])
def test_a_host_that_never_closes_standard_input(room: Path, event: str, code: int) -> None:
    """Nothing but a cut payload came: the gate refuses, another event ends silently, both in their own time."""
    process = subprocess.Popen([*RUN, "claude", event], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(b'{"session_id": "s-1", ')
    process.stdin.flush()
    assert process.wait(29) == code
    assert process.stdout.read() == b""
    said = process.stderr.read()
    assert (b"no JSON object" in said) == (code == 2)
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def test_a_payload_that_is_whole_is_judged_although_standard_input_stays_open(room: Path) -> None:
    host = ClaudeHost(room)
    host.write_user("Keep this")
    given = {"session_id": "s-1", "transcript_path": str(host.transcript), "trigger": "auto"}
    process = subprocess.Popen([*RUN, "claude", "PreCompact"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(json.dumps(given).encode())
    process.stdin.flush()
    assert process.wait(29) == 0
    assert b"checkpoint" in process.stdout.read()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


@pytest.mark.parametrize(("host", "event"), [("claude", "PreCompact"), ("codex", "PreCompact"), ("gemini", "PreCompress"), ("kiro", "PreCompact")])
@pytest.mark.parametrize("way", ["terminated", "no memoryd"])
def test_a_gate_that_cannot_be_asked_ends_in_the_veto_of_its_host(room: Path, host: str, event: str, way: str) -> None:
    python, environment = sys.executable, {**os.environ}
    if way == "no memoryd":
        # an interpreter that has no memoryd: the same one, seen from outside its environment
        python = os.path.realpath(sys.executable)
        has = subprocess.run([python, "-I", "-c", "import memoryd"], capture_output=True, check=False).returncode == 0
        if has:
            pytest.skip("the base interpreter has memoryd too")
    with false_daemon(room / "run/m.sock", None if way == "terminated" else b""):
        process = subprocess.Popen(
            [python, "-I", "-S", str(HOOK), host, event], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        assert process.stdin is not None
        if way == "terminated":
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
        out, error = process.communicate(b"{}", timeout=29)
    if host == "codex":
        said = json.loads(out)
        assert (process.returncode, error, set(said), said["continue"]) == (0, b"", {"continue", "stopReason"}, False)
        reason = said["stopReason"]
    else:
        assert (process.returncode, out) == (2, b"")
        reason = error.decode()
    assert reason.startswith("BLOCKED_MISSING_PREREQUISITE") and "MEMORYD_GATE" in reason


@pytest.mark.parametrize("word", ["off", "warn", " WARN "])
def test_the_operators_word_opens_a_gate_that_nobody_could_ask(room: Path, word: str) -> None:
    environment = {**os.environ, "MEMORYD_GATE": word}
    python = os.path.realpath(sys.executable)
    done = subprocess.run([python, "-I", "-S", str(HOOK), "claude", "PreCompact"], input=b"{}", capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_full_disk_loses_no_more_than_the_frame(room: Path) -> None:
    host = ClaudeHost(room)
    host.before = full_disk
    host.write_user("Keep this")
    assert host.tell("Stop").silent
    compacted, reason = host.compact()
    assert not compacted and b"BLOCKED_MISSING_PREREQUISITE" in reason
    host.before = None
    assert host.compact()[0]


@pytest.mark.parametrize("length", [107, 108])
def test_a_socket_path_at_the_limit(room: Path, length: int) -> None:
    host = ClaudeHost(room)
    path = str(room / "s")
    host.env["MEMORYD_SOCKET"] = path + "x" * (length - len(path))
    host.write_user("Keep this")
    assert host.tell("Stop").silent
    assert host.compact()[0]


def test_files_are_private_from_the_first_byte(room: Path) -> None:
    host = ClaudeHost(room)
    host.before = lambda: os.umask(0) and None
    assert host.tell("UserPromptSubmit").silent
    assert (room / "home").stat().st_mode & 0o777 == 0o700
    assert (room / "home/hooks.spool").stat().st_mode & 0o777 == 0o600
