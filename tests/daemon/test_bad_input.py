"""Bytes that no client should send, and clients that do not behave: each costs its own connection, and nothing else."""

from __future__ import annotations

import contextlib
import random
import resource
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoryd.wire import METHODS
from tests.daemon.harness import SCOPE, Daemon, Raw, frame, logged, until

CONFIG = """
[daemon]
stall = 0.8
frame_bytes = 1048576
"""
HELLO = frame("hello", ask=0, protocol=[1, 1], client="test", home=None, profile="default")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon"), config=CONFIG) as found:
        yield found


@pytest.fixture(autouse=True)
def witness(daemon: Daemon) -> Iterator[Raw]:
    """Another client of the same daemon, which must notice nothing."""
    with daemon.client() as raw:
        before = raw.turn("witness")
        yield raw
        after = raw.turn("witness")
        daemon.check()
        assert before != after and {before, after} <= logged(daemon.home).keys()


def record(*fields: bytes) -> bytes:
    body = b"".join(struct.pack(">I", len(field)) + field for field in fields)
    return b"H" + struct.pack(">I", len(body)) + body


GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("16030100a5010000a10303") + bytes(100) + b"\n",
    "binary": bytes(range(256)) * 40 + b"\n",
    "zeros": bytes(5000) + b"\n",
    "not utf-8": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff\xfe"}\n',
    "null": b"null\n",
    "number": b"1e999\n",
    "text": b'"hello"\n',
    "object": b"{}\n",
    "empty batch": b"[]\n",
    "batch of numbers": b"[1, 2, 3]\n",
    "no version": b'{"id": 1, "method": "ping"}\n',
    "old version": b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}\n',
    "params by place": b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}\n',
    "method is a number": b'{"jsonrpc": "2.0", "id": 1, "method": 7}\n',
    "id is an object": b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}\n',
    "cut off": b'{"jsonrpc": "2.0", "id": 1, "meth\n',
    "two in one line": frame("ping", ask=1).strip() + frame("ping", ask=2),
    "deep": b"[" * 200_000 + b"\n",
    "deep objects": b'{"a":' * 50_000 + b"\n",
    "a long number": b"9" * 100_000 + b"\n",
    "many lines of nothing": b"\n" * 100_000,
    "one line of spaces": b" " * 100_000 + b"\n",
    "carriage returns": b"\r\n\r\n\r\n{}\r\n",
    "a byte order mark": b"\xef\xbb\xbf" + frame("ping", ask=1),
    "call before hello": frame("sync_turn", ask=1, user="x", assistant="y"),
    "hello with nothing": frame("hello", ask=1),
    "hello of numbers": frame("hello", ask=1, protocol=[1, 1], client=7, home=7, profile=7),
    "hello twice": HELLO + HELLO,
    "hello in a batch": b"[" + HELLO.strip() + b"]\n",
    "a home that is relative": frame("hello", ask=1, protocol=[1, 1], client="", home="x/y", profile="default"),
    "a home that cannot be": frame("hello", ask=1, protocol=[1, 1], client="", home="/proc/1/nothing", profile="default"),
    "a home with a zero": frame("hello", ask=1, protocol=[1, 1], client="", home="/tmp/\0", profile="default"),
    "a profile without a name": frame("hello", ask=1, protocol=[1, 1], client="", home=None, profile=""),
    "a profile of a million letters": frame("hello", ask=1, protocol=[1, 1], client="", home=None, profile="x" * 1_000_000),
    "a wrong record": frame("hello", ask=1, protocol=[1, 1], client="", home=None, profile={"$": "Path"}),
    "hook: too long": b"H" + b"\xff" * 4,
    "hook: of nothing": b"H\0\0\0\0",
    "hook: of garbage": b"H\0\0\0\5abcde",
    "hook: another version": record(b"99", b"claude", b"Stop", b"/"),
    "hook: fields that lie": b"H\0\0\0\x08" + b"\0\0\xff\xff" + b"abcd",
    "hook: and more": record(b"1", b"claude", b"Stop", b"/", b"") + b"more",
    "hook: half": b"H\0\0",
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_costs_its_own_connection(daemon: Daemon, name: str) -> None:
    with Raw(daemon.path) as raw:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            raw.send(GARBAGE[name])
            raw.socket.shutdown(socket.SHUT_WR)
        assert raw.is_closed()


def test_a_wrong_call_costs_nothing_but_its_answer(daemon: Daemon) -> None:
    wrong = [
        ("no_such_method", {}),
        ("_kernel", {}),
        ("parts", {}),
        ("sync_turn", {}),
        ("sync_turn", {"user": 7, "assistant": "x", "scope": SCOPE}),
        ("sync_turn", {"user": "x", "assistant": "y", "scope": {"user": ""}}),
        ("sync_turn", {"user": "x", "assistant": "y", "scope": {"planet": "x"}}),
        ("sync_turn", {"user": "x", "assistant": "y", "scope": "ada"}),
        ("sync_turn", {"user": "x", "assistant": "y", "scope": {**SCOPE, "profile": "another"}}),
        ("sync_turn", {"user": "x", "assistant": "y", "scope": SCOPE, "event_id": "short"}),
        ("sync_turn", {"user": "x", "assistant": "y", "scope": SCOPE, "created_at": {"$time": "never"}}),
        ("sync_turn", {"user": "x", "assistant": "y", "scope": SCOPE, "self": 1}),
        ("recall", {"query": "x", "limit": "many", "scope": SCOPE}),
        ("recall", {"query": "x", "limit": -1, "scope": SCOPE}),
        ("restore", {"id": "nothing", "scope": SCOPE}),
        ("forget", {"scope": SCOPE}),
        ("checkpoint", {"messages": "text", "scope": SCOPE}),
        ("store", {"key": "", "value": "x", "scope": SCOPE}),
        ("settled", {"accepted": "x", "timeout": 1, "scope": SCOPE}),
        ("drain", {"timeout": "soon", "scope": SCOPE}),
    ]
    with daemon.client() as raw:
        for number, (method, params) in enumerate(wrong):
            raw.send(frame(method, ask=f"w{number}", **params))
            answer = raw.read()
            assert answer["id"] == f"w{number}" and answer["error"]["message"], (method, params, answer)
        raw.turn("still here")


WRONG: list[Any] = [
    7, -1, 1.5, True, None, "x" * 600, "", [], ["x"], {}, {"a": 1}, 10**30, {"$": "Accepted", "state": "held"}, {"$float": "nan"},
    {"$bytes": "eA=="}, {"$text": "7aCA"}, {"$time": "2026-01-01T00:00:00"}, {"$map": [[1, 2]]}, {"$odd": ["Thing", "<thing>"]},
]  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_value_is_an_answer_and_never_a_bug(daemon: Daemon, name: str) -> None:
    """Any value in the place of each parameter: done, or refused by an error that says what was wrong."""
    method = METHODS[name]
    right = {"text": "x", "seconds": 0.01, "Accepted": {"$": "Accepted", "state": "off"}}
    needed = {param.name: right.get(param.type) for param in method.params if param.required}
    with daemon.client() as raw:
        for param in method.params:
            for value in WRONG:
                if param.name == "timeout" and value in (7, 1.5):
                    continue  # a right one, and long
                raw.send(frame(name, ask=1, scope={"user": "eve", "session": "s"}, **{**needed, param.name: value}))
                answer = raw.read()
                assert "internal error" not in answer.get("error", {}).get("message", ""), (param.name, value, daemon.errors)
    assert "crashed" not in daemon.errors


def test_a_notification_that_cannot_be_done_is_counted(daemon: Daemon) -> None:
    """Whoever sends one is not told; status is."""
    with daemon.client() as raw:
        before = raw.call("daemon_status")["refused"]
        raw.send(frame("sync_turn", user="x", assistant="y", scope={"user": "ada"}))
        raw.send(frame("no_such_method"))
        raw.send(frame("recall", query=7, scope=SCOPE))
        until(lambda: raw.call("daemon_status")["refused"] == before + 3)


def test_a_client_that_leaves_while_it_is_told_of_progress(daemon: Daemon) -> None:
    with daemon.client() as raw:
        for number in range(5):
            rows = [{"role": "user", "content": f"{number}-{row}"} for row in range(200)]
            raw.call("checkpoint", messages=rows, scope={**SCOPE, "session": f"p{number}"})
        raw.send(frame("verify", ask="v", progress=True, scope=SCOPE))
        told = []
        while (found := raw.read()).get("id") != "v":
            told.append(found["params"])
        assert found["result"]["corrupt"] == [] and told and told[-1]["id"] == "v"
    for _ in range(20):
        with daemon.client() as leaving:
            leaving.send(frame("verify", ask="v", progress=True, scope=SCOPE))


def test_random_bytes_and_mutilated_frames(daemon: Daemon) -> None:
    chooser = random.Random(7)
    good = HELLO + frame("sync_turn", ask=1, user="fuzz", assistant="", scope=SCOPE) + frame("recall", ask=2, query="fuzz", scope=SCOPE)
    for _ in range(150):
        data = bytearray(good)
        for _ in range(chooser.randint(1, 30)):
            where = chooser.randrange(len(data))
            match chooser.randrange(4):
                case 0:
                    data[where] = chooser.randrange(256)
                case 1:
                    del data[where : where + chooser.randint(1, 40)]
                case 2:
                    data[where:where] = chooser.randbytes(chooser.randint(1, 40))
                case _:
                    data[where:where] = data[: chooser.randint(0, 60)]
        with Raw(daemon.path) as raw, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            raw.send(bytes(data))
            raw.socket.shutdown(socket.SHUT_WR)


def test_a_line_without_an_end_is_cut_and_takes_no_memory(daemon: Daemon) -> None:
    """A gigabyte, as far as the daemon takes it."""
    before, block, sent = daemon.memory(), b"x" * (1 << 20), 0
    with daemon.client() as raw:
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while sent < 1 << 30:
                raw.send(block)
                sent += len(block)
        assert sent <= 4 << 20
        assert "a frame of more than 1048576 bytes" in raw.read()["error"]["message"]
        assert raw.is_closed()
    assert daemon.memory() - before < 32 << 20


def test_a_long_line_below_the_limit_is_taken(daemon: Daemon) -> None:
    with daemon.client() as raw:
        text = "word " * 200_000
        id = raw.turn(text)
    assert logged(daemon.home)[id] == text


@pytest.mark.parametrize("half", [b"", b'{"jsonrpc": "2.0", "id": 1, "met', b"H\0\0\1\0half"])
def test_who_begins_and_does_not_go_on_is_cut_off(daemon: Daemon, half: bytes) -> None:
    with Raw(daemon.path) as raw:
        raw.send(half)
        assert raw.is_closed()


def test_half_a_frame_in_the_middle_of_a_talk_is_cut_off(daemon: Daemon) -> None:
    with daemon.client() as raw:
        id = raw.turn("said whole")
        raw.send(frame("sync_turn", user="said by", assistant="half", scope=SCOPE)[:40])
        assert raw.is_closed()
    assert id in logged(daemon.home)
    assert "said by" not in logged(daemon.home).values()


def test_a_frame_that_comes_byte_by_byte_is_one_frame(daemon: Daemon) -> None:
    with daemon.client() as raw:
        for byte in frame("ping", ask="slow"):
            raw.send(bytes([byte]))
            time.sleep(0.002)
        assert raw.read()["id"] == "slow"


def test_a_client_that_never_reads_takes_little_memory_and_is_cut_off(daemon: Daemon) -> None:
    with daemon.client() as filler:
        for number in range(20):
            filler.turn(f"{number} " + "long " * 10_000)
    before = daemon.memory()
    with daemon.client() as raw:
        raw.socket.settimeout(0.5)
        with contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
            for number in range(100_000):
                raw.send(frame("recall", ask=number, query="long", limit=20, scope=SCOPE))
        grown = daemon.memory() - before
        with Raw(daemon.path) as other:
            other.hello(None)
            until(lambda: other.call("daemon_status")["connections"] <= 2)  # the witness and this one
    assert grown < 200 << 20


def test_more_calls_at_once_than_allowed_are_told_so(daemon: Daemon) -> None:
    with daemon.client() as raw:
        raw.send(b"".join(frame("recall", ask=number, query=f"word {number}", scope=SCOPE) for number in range(400)))
        answers = [raw.read() for _ in range(400)]
        busy = [answer["error"]["data"] for answer in answers if "error" in answer]
        assert all(data["type"] == "DaemonBusy" and data["retryable"] for data in busy)
        assert len(answers) - len(busy) >= 64
        raw.turn("and goes on")


def test_a_client_that_leaves_in_the_middle_of_a_call(daemon: Daemon) -> None:
    for _ in range(30):
        raw = daemon.client()
        raw.send(frame("checkpoint", ask=1, messages=[{"role": "user", "content": "m"}] * 50, scope=SCOPE))
        raw.send(frame("recall", ask=2, query="m", scope=SCOPE))
        raw.close()
    with Raw(daemon.path) as other:
        other.hello(None)
        until(lambda: other.call("daemon_status")["connections"] <= 2)


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("this machine allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_a_thousand_connections_are_served(daemon: Daemon) -> None:
    before, files = daemon.memory(), daemon.descriptors()
    raws = []
    for _ in range(1000):
        raws.append(Raw(daemon.path))
        raws[-1].send(HELLO)
    for raw in raws:
        assert raw.read()["id"] == 0
    ids = {raw.turn(f"turn of {number}") for number, raw in enumerate(raws)}
    grown = daemon.memory() - before
    for raw in raws:
        raw.close()
    until(lambda: daemon.descriptors() <= files + 2)
    assert len(ids & logged(daemon.home).keys()) == 1000
    assert grown < 64 << 20


def test_above_the_limit_the_longest_silent_one_gives_way(tmp_path: Path) -> None:
    with Daemon(tmp_path, config="[daemon]\nconnections = 16\n") as small, contextlib.ExitStack() as stack:
        raws = [stack.enter_context(small.client()) for _ in range(16)]
        time.sleep(0.6)
        for raw in raws[1:]:
            raw.call("ping")
        late = stack.enter_context(small.client())
        late.turn("came late")
        assert raws[0].is_closed()
        for raw in raws[1:]:
            raw.call("ping")


FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
from memoryd.cli import main
sys.exit(main())
"""


def test_where_the_system_allows_few_files_stores_keep_theirs(tmp_path: Path) -> None:
    """Connections are fewer then, and whoever comes is still served."""
    with Daemon(tmp_path, program=("-c", FEW_FILES)) as daemon, contextlib.ExitStack() as stack:
        for number in range(100):
            raw = stack.enter_context(daemon.client())
            if number % 10 == 0:
                raw.turn(f"turn {number}")
        assert daemon.descriptors() < 120
        with daemon.client("another") as another:
            another.turn("a profile of its own")
        assert len(logged(daemon.home)) == 10


def test_who_is_silent_for_too_long_is_cut_off_and_may_come_again(tmp_path: Path) -> None:
    with Daemon(tmp_path, config="[daemon]\nidle = 0.5\n") as daemon:
        with daemon.client() as raw:
            raw.turn("and then nothing")
            assert raw.is_closed()
        daemon.check()
