"""From starting ``memoryd mcp`` to the answer of its first call, against a Python that only imports the SDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from _figures import figure, interleave, median

_ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
_LINES = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "memory_search", "arguments": {"query": "where do I live"}}},
)
_INPUT = "".join(json.dumps(line) + "\n" for line in _LINES).encode()


def first_call() -> None:
    """Handshake and call in one write; done when the call is answered, with the server still there."""
    environ = {**_ENVIRON, "MEMORYD_HOME": os.environ["MEMORYD_HOME"]}
    command = [sys.executable, "-I", "-m", "memoryd", "mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(_INPUT)
        server.stdin.flush()
        server.stdout.readline()
        answer = json.loads(server.stdout.readline())
        assert answer["result"]["structuredContent"]["source"] == "local", answer
        server.kill()


def import_only() -> None:
    subprocess.run([sys.executable, "-I", "-c", "import mcp"], check=True, env=_ENVIRON)


def run() -> list[dict[str, Any]]:
    for step in (first_call, import_only):
        step()
    times = interleave(9, ours=first_call, peer=import_only)
    ours, peer = median(times["ours"]), median(times["peer"])
    detail = f"{ours * 1e3:.0f} ms from start to answer, memory opened on the way; import mcp {peer * 1e3:.0f} ms"
    return [figure("memoryd mcp, first call answered / import mcp", 1.3, None, ours / peer, "x", detail)]
