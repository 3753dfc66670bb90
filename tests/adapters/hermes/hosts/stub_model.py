"""A model on 127.0.0.1 that speaks as much of the chat completions protocol as an agent needs, and remembers what it was asked.

What the last user message says decides the answer: ``CALL_TOOL name {json}`` a tool call, a request without tools that asks for a
summary a fixed one, everything else a short text that repeats how the message began.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SUMMARY = "SUMMARY-OF-THE-STUB"
_SUMMARY_WORDS = re.compile(r"summar|handoff|compact", re.IGNORECASE)


def text_of(content: object) -> str:
    """The text of a message's content, a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part.get("text", "") for part in parts if isinstance(part, dict))


class StubModel:
    """``asked`` holds one mapping a request: ``kind``, ``system``, ``last_user``, ``text`` (all messages), ``tools`` (names)."""

    def __init__(self, url: str, context: int) -> None:
        self.url = url
        self.context = context
        self.asked: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The message of the assistant."""
        messages: Sequence[Mapping[str, Any]] = body.get("messages") or []
        tools = [tool["function"]["name"] for tool in body.get("tools") or []]
        text = "\n".join(text_of(message.get("content")) for message in messages)
        users = [text_of(message.get("content")) for message in messages if message.get("role") == "user"]
        systems = [text_of(message.get("content")) for message in messages if message.get("role") == "system"]
        last = users[-1] if users else ""
        kind, message = self._decide(last, bool(messages) and messages[-1].get("role") == "tool", tools, text)
        with self._lock:
            self.asked.append({"kind": kind, "system": "\n".join(systems), "last_user": last, "text": text, "tools": tools})
        return message

    def _decide(self, last: str, tool_answered: bool, tools: list[str], text: str) -> tuple[str, dict[str, Any]]:
        wanted = re.search(r"CALL_TOOL (\w+) (\{.*?\})\s*(?:$|\n|<memory-context>)", last, re.DOTALL)
        if wanted and not tool_answered and wanted[1] in tools:
            call = {"id": f"call_{len(self.asked)}", "type": "function", "function": {"name": wanted[1], "arguments": wanted[2]}}
            return "tool", {"role": "assistant", "content": None, "tool_calls": [call]}
        if not tools and _SUMMARY_WORDS.search(text):
            return "summary", {"role": "assistant", "content": f"## Goal\n{SUMMARY}\n## Progress\nnone\n## Next\nnone"}
        return "chat", {"role": "assistant", "content": f"Answer {len(self.asked)} to: {last.splitlines()[0][:60] if last else last}"}


@contextmanager
def stub_model(context: int = 200_000) -> Iterator[StubModel]:
    """A stub that serves until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.stub = StubModel(f"http://127.0.0.1:{server.server_port}/v1", context)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.stub  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            pass  # the agent was killed in the middle of an answer

    def do_GET(self) -> None:
        stub: StubModel = self.server.stub  # type: ignore[attr-defined]
        if not self.path.rstrip("/").endswith("/models"):
            return self._json(404, {"error": {"message": f"no {self.path} here"}})
        model = {"id": "stub-model", "object": "model", "context_length": stub.context, "max_model_len": stub.context}
        return self._json(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        stub: StubModel = self.server.stub  # type: ignore[attr-defined]
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.endswith("/chat/completions"):
            return self._json(404, {"error": {"message": f"no {self.path} here"}})
        body = json.loads(raw)
        message = stub.answer(body)
        # compaction thresholds follow what the model says it was sent
        used = {"prompt_tokens": len(raw) // 4, "completion_tokens": 20, "total_tokens": len(raw) // 4 + 20}
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        head = {"id": f"stub-{len(stub.asked)}", "created": 1, "model": "stub-model"}
        if body.get("stream"):
            return self._stream(head, message, reason, used)
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return self._json(200, {**head, "object": "chat.completion", "choices": [choice], "usage": used})

    def _json(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, head: Mapping[str, Any], message: Mapping[str, Any], reason: str, used: Mapping[str, int]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        calls = [{"index": index, **call} for index, call in enumerate(message.get("tool_calls") or [])]
        body = {"tool_calls": calls} if calls else {"content": message["content"]}
        for delta, end in (({"role": "assistant", "content": ""}, None), (body, None), ({}, reason)):
            chunk = {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
            self._event(json.dumps({**chunk, "usage": used} if end else chunk))
        self._event("[DONE]")

    def _event(self, data: str) -> None:
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()
