"""The server as a client starts it: a process, lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

COMMAND = (sys.executable, "-I", "-m", "memoryd", "mcp")
_OLD = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Raw:
    """A client that speaks the protocol by hand."""

    def __init__(self, cwd: Path | None = None) -> None:
        self.process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd)
        self._last = 0

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> Any:
        """The next message; what is no JSON fails."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        """The answer to a request: its result, or its error."""
        self._last += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}).encode() + b"\n")
        answer = self.read()
        assert answer["id"] == self._last
        return answer.get("result", answer)

    def shake(self) -> Any:
        """The handshake that there was before 2026-07-28."""
        result = self.ask("initialize", **_OLD)
        self.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        return result

    def call(self, name: str, **arguments: Any) -> Any:
        """The structured answer of a tool."""
        result = self.ask("tools/call", name=name, arguments=arguments)
        assert not result.get("isError"), result
        return result["structuredContent"]

    def refused(self, name: str, **arguments: Any) -> str:
        """What a tool says that does not do as it is asked."""
        result = self.ask("tools/call", name=name, arguments=arguments)
        assert result["isError"], result
        return str(result["content"][0]["text"])

    def end(self) -> tuple[int, bytes]:
        """Goes away; the server's exit code, and what it wrote after the last answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(timeout=30)
        return code, self.process.stdout.read()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                pass


@pytest.fixture
def raw() -> Iterator[Raw]:
    client = Raw()
    yield client
    client.close()


@pytest.fixture
def other(raw: Raw) -> Iterator[Raw]:
    """A second server on the same profile."""
    client = Raw()
    yield client
    client.close()


def files_with(root: Path, words: bytes) -> list[str]:
    """Every file below ``root`` that holds ``words``."""
    paths = [Path(folder, name) for folder, _, names in os.walk(root) for name in names]
    return [str(path.relative_to(root)) for path in paths if words in path.read_bytes()]
