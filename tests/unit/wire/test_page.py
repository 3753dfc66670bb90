"""The conversation that docs/reference/wire.md shows is one."""

from __future__ import annotations

import json
from pathlib import Path

from memoryd.wire import Answer, Call, Caller, Connection, Greeting, Rejected, Welcome, make_record

PAGE = Path(__file__).parents[3] / "docs/reference/wire.md"


def test_the_conversation_of_the_page() -> None:
    server, client = Connection(), Caller(make_record)
    client.hello(None, None)
    asked = []
    for line in PAGE.read_text("utf-8").split("```text\n")[1].split("```")[0].splitlines():
        side, _, frame = line.partition(" ")
        if side == "<":
            found = client.receive(frame.encode() + b"\n")
            assert [answer.id for answer in found if isinstance(answer, Answer)] == asked
            continue
        events = server.receive(frame.encode() + b"\n")
        assert not [event for event in events if isinstance(event, Rejected)]
        for event in events:
            if isinstance(event, Greeting):
                server.welcome(event, Welcome(1))
            if isinstance(event, Call):
                server.answer(event, None)
        sent = json.loads(frame)
        asked = [one["id"] for one in (sent if isinstance(sent, list) else [sent]) if "id" in one]
