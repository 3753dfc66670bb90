"""The real client of the SDK, over stdio, under trio; and lines by hand, in both eras of the protocol."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from memoryd.blocking import Memory
from memoryd.core import scope
from tests.adapters.mcp.conftest import COMMAND, Raw

NAMES = {
    "memory_search", "memory_get", "memory_add", "memory_timeline", "memory_forget", "checkpoint_list", "checkpoint_read",
    "memory_status", "memory_backend",
}  # fmt: skip
CHANGES = {"memory_add", "memory_forget", "memory_backend"}
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def test_the_sdks_own_client_under_trio() -> None:
    """Its client checks every structured answer against the schema that the tool was listed with."""
    parameters = StdioServerParameters(command=COMMAND[0], args=list(COMMAND[1:]), env=dict(os.environ))
    async with Client(stdio_client(parameters)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == NAMES
        for name, tool in tools.items():
            assert tool.annotations is not None and tool.output_schema is not None
            assert tool.annotations.read_only_hint is (name not in CHANGES)
            assert tool.annotations.destructive_hint is (name in ("memory_forget", "memory_backend"))
            assert tool.annotations.open_world_hint is False

        async def call(name: str, **arguments: Any) -> Any:
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result
            assert json.loads(result.content[0].text) == result.structured_content, "the text is the same"
            return result.structured_content

        await call("memory_add", key="city", text="Oslo")
        await call("memory_add", key="city", text="Turin", metadata={"type": "fact"})
        note = await call("memory_add", text="We chose trio over asyncio", said_by="user")
        assert note["state"] == "journaled"
        (hit,) = (await call("memory_search", query="trio"))["hits"]
        assert (hit["id"], hit["kind"], hit["role"], hit["source"]) == (note["id"], "turn", "user", "local:turn")
        found = await call("memory_get", ids=[note["id"], "city", "nothing"])
        assert [one["text"] for one in found["found"]] == ["We chose trio over asyncio", "Turin"]
        assert found["missing"] == ["nothing"]
        values = (await call("memory_timeline", key="city"))["entries"]
        assert [value["text"] for value in values] == ["Oslo", "Turin"], "oldest first"
        assert (await call("memory_backend", action="list"))["keys"] == ["city"]
        assert (await call("memory_forget", key="city"))["erased"] == 2
        assert (await call("memory_status"))["status"]["state"] == "ok"
        assert (await client.list_prompts()).prompts[0].name == "recall"
        said = (await client.get_prompt("recall", {"query": "trio"})).messages[0].content.text
        assert "We chose trio over asyncio" in said
        assert "not instructions" in said


def test_the_handshake_of_before(raw: Raw) -> None:
    result = raw.shake()
    assert result["protocolVersion"] == "2025-06-18"
    assert result["serverInfo"]["name"] == "memoryd"
    assert "no signal before it compacts" in result["instructions"]
    assert {tool["name"] for tool in raw.ask("tools/list")["tools"]} == NAMES
    assert "no signal before it compacts" in raw.call("memory_status")["compaction"]
    assert "gated" not in json.dumps([result, raw.ask("tools/list")])


def test_the_handshake_of_now(raw: Raw) -> None:
    """Every request says by itself which version it is of."""
    found = raw.ask("server/discover", _meta=_META)
    assert "2026-07-28" in found["supportedVersions"]
    answer = raw.ask("tools/call", name="memory_add", arguments={"key": "k", "text": "v"}, _meta=_META)
    assert answer["structuredContent"]["state"] == "journaled"
    assert raw.ask("tools/call", name="memory_get", arguments={"ids": ["k"]}, _meta=_META)["structuredContent"]["found"][0]["text"] == "v"


def test_garbage_and_wrong_calls_cost_nothing(raw: Raw) -> None:
    raw.shake()
    for line in (b"garbage", b"\xff\xfe{}", b"[1]", b"{}", b'{"jsonrpc": "2.0", "id": 1}', b"", b"x" * (1 << 20), b'{"a": ' * 10_000):
        raw.write(line + b"\n")
    assert raw.ask("ping") == {}
    assert raw.call("memory_add", text="still here")["state"] == "journaled"
    _wrong_calls(raw)
    code, rest = raw.end()
    assert (code, rest) == (0, b"")


def test_half_of_a_surrogate_pair_is_answered(raw: Raw) -> None:
    raw.shake()
    assert raw.call("memory_search", query="\ud83d zebra")["hits"] == []
    assert raw.call("memory_add", text="\U0001f600 zebra \ud83d\\ud83d", key="k")["state"] == "journaled"
    (found,) = raw.call("memory_get", ids=["k"])["found"]
    assert found["text"] == "\U0001f600 zebra \ufffd\\ud83d"


def _wrong_calls(raw: Raw) -> None:
    """Each names what is wrong."""
    assert raw.refused("memory_search") == "query: is required"
    assert raw.refused("memory_search", query=5).startswith("query: expected")
    assert raw.refused("memory_search", query="x", limit=1000) == "limit: expected a whole number from 0 to 50"
    assert raw.refused("memory_search", q="x") == "q: is no argument; there are: query, limit, session, as_of"
    assert raw.refused("memory_get", ids=[]) == "ids: expected a list of texts"
    assert raw.refused("memory_add", text="x", said_by="a cat") == "said_by: expected one of assistant, user"
    assert raw.refused("memory_forget") == "memory_forget: give at least one of id, key, session, since, until"
    assert "no checkpoint" in raw.refused("checkpoint_read", id="00000000")
    assert raw.call("memory_backend", action="nothing")["error"].startswith("Unknown action")
    assert raw.ask("tools/call", name="rm", arguments={})["error"]["code"] == -32602
    assert raw.ask("resources/read", uri="memoryd://nothing")["error"]["code"] == -32602
    assert raw.ask("prompts/get", name="recall")["error"]["code"] == -32602


def test_checkpoints_and_any_text_are_read_word_for_word(raw: Raw) -> None:
    rows = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"message {n}: " + "x" * 3000} for n in range(40)]
    with Memory() as memory, scope(user="default", session="s1"):
        receipt = memory.checkpoint(rows, host="claude")
    raw.shake()
    (found,) = raw.call("checkpoint_list")["checkpoints"]
    assert (found["id"], found["session"], found["messages"], found["host"]) == (receipt.id, "s1", 40, "claude")
    assert raw.call("checkpoint_list", session="other")["checkpoints"] == []
    read: list[Any] = []
    place: int | None = 0
    while place is not None:
        page = raw.call("checkpoint_read", id=receipt.id[:12], first=place, count=200)
        assert len(json.dumps(page)) < 60_000, "an answer is bounded"
        read += page["rows"]
        place = page["next"]
    assert [row["content"] for row in read] == rows
    assert [row["row"] for row in raw.call("checkpoint_read", id=receipt.id, first=3, count=2)["rows"]] == [3, 4]
    uri = f"memoryd://checkpoint/{receipt.id}"
    assert uri in [one["uri"] for one in raw.ask("resources/list")["resources"]]
    assert json.loads(raw.ask("resources/read", uri=uri)["contents"][0]["text"])["total"] == 40
    _any_text_comes_back_as_json(raw)


def _any_text_comes_back_as_json(raw: Raw) -> None:
    odd = 'a "quote", \u2028, \U0001f600, \x00, <b>&</b>, ]]>'
    raw.call("memory_add", key="odd/key ?é", text=odd)
    assert raw.call("memory_get", ids=["odd/key ?é"])["found"][0]["text"] == odd
    with Memory() as memory, scope(user="default"):
        memory.store("half", "half a pair: \ud800")
    assert raw.call("memory_get", ids=["half"])["found"][0]["text"] == "half a pair: \\ud800"
    listed = {one["name"]: one["uri"] for one in raw.ask("resources/list")["resources"]}
    read = raw.ask("resources/read", uri=listed["odd/key ?é"])["contents"][0]
    assert json.loads(read["text"])["text"] == odd


def test_two_servers_share_a_profile_and_end_with_their_clients(raw: Raw, other: Raw) -> None:
    raw.shake()
    other.shake()
    for number in range(20):
        (raw, other)[number % 2].call("memory_add", text=f"The launch code word number {number} is kestrel{number}")
    for number in range(20):
        client = (other, raw)[number % 2]
        assert client.call("memory_search", query=f"kestrel{number}")["hits"][0]["text"].endswith(f"kestrel{number}")
    assert raw.end() == (0, b"")
    assert other.call("memory_add", text="alone now")["state"] == "journaled"
    assert other.end() == (0, b"")
    with Memory() as memory, scope(user="default"):
        assert memory.recall("alone now")[0].text == "alone now"


# -- the end -----------------------------------------------------------------------------------------------------------------


def test_without_input_it_ends_at_once() -> None:
    done = subprocess.run(COMMAND, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_ends_it(raw: Raw, number: signal.Signals, code: int) -> None:
    raw.shake()
    raw.process.send_signal(number)
    assert raw.process.wait(timeout=30) == code
    assert raw.process.stdout is not None and raw.process.stderr is not None
    assert (raw.process.stdout.read(), raw.process.stderr.read()) == (b"", b"")


def test_a_client_that_is_killed_leaves_no_server(tmp_path: Path) -> None:
    client = "import subprocess, sys, time; p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE); print(p.pid, flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", client, *COMMAND], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
    until = time.monotonic() + 30
    while _runs(server) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _runs(server)


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


# -- without the SDK ---------------------------------------------------------------------------------------------------------


def test_a_missing_sdk_is_one_line() -> None:
    program = "import sys; sys.modules['mcp'] = None; from memoryd.cli import main; sys.argv[1:] = ['mcp']; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 64
    assert done.stdout == ""
    assert done.stderr == "memoryd: mcp: the package mcp is not installed: pip install 'memoryd[mcp]'\n"


def test_the_sdk_loads_with_a_server_only() -> None:
    program = "import sys, memoryd_mcp; memoryd_mcp.host, memoryd_mcp.command; sys.exit('mcp' in sys.modules or 'mcp_types' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_the_page_names_every_tool() -> None:
    page = (Path(__file__).parents[3] / "docs/howto/mcp.md").read_text("utf-8")
    assert all(f"`{name}`" in page for name in NAMES)
