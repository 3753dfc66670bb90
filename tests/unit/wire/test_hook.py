"""The hook frame: any split of its bytes gives the same call, and garbage is a protocol error and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import ProtocolError
from memoryd.wire import HookCall, HookCallReader, HookReply, HookReplyReader

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
CALLS = st.builds(
    HookCall,
    NAMES,
    NAMES,
    NAMES,
    st.dictionaries(NAMES.map(lambda name: name.replace("=", "_")), NAMES, max_size=4),
    st.binary(max_size=200),
)
REPLIES = st.builds(HookReply, st.integers(0, 255), st.binary(max_size=200), st.binary(max_size=200))


@given(CALLS, st.integers(1, 50))
def test_a_call_survives_any_split(call: HookCall, size: int) -> None:
    reader, frame = HookCallReader(), call.encode()
    assert [reader.receive(frame[n : n + size]) for n in range(0, len(frame), size)][-1] == call


@given(REPLIES, st.integers(1, 50))
def test_a_reply_survives_any_split(reply: HookReply, size: int) -> None:
    reader, frame = HookReplyReader(), reply.encode()
    assert [reader.receive(frame[n : n + size]) for n in range(0, len(frame), size)][-1] == reply


@given(st.binary(max_size=100), st.booleans())
def test_garbage_is_a_protocol_error(data: bytes, framed: bool) -> None:
    body = b"H" + len(data).to_bytes(4, "big") + data if framed else data
    try:
        call = HookCallReader().receive(body)
    except ProtocolError:
        return
    assert call is None or framed


def test_the_layout_is_what_the_hook_program_writes() -> None:
    def field(data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + data

    fields = [b"1", b"claude", b"PreCompact", b"/w"]
    body = b"".join(map(field, fields)) + (2).to_bytes(4, "big") + field(b"A=1") + field(b"B=x=y") + field(b"{}")
    call = HookCallReader().receive(b"H" + len(body).to_bytes(4, "big") + body)
    assert call == HookCall("claude", "PreCompact", "/w", {"A": "1", "B": "x=y"}, b"{}")
    answer = b"\2" + field(b"") + field(b"why")
    assert HookReply(2, b"", b"why").encode() == b"R" + len(answer).to_bytes(4, "big") + answer


def test_names_that_are_no_text_come_back_as_bytes() -> None:
    call = HookCallReader().receive(HookCall("h", "e", "/\udcff").encode())
    assert call is not None and call.cwd == "/\udcff"


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (b"X", "begins with"),
        (b"H\xff\xff\xff\xff", "at most"),
        (HookCall("h", "e").encode() + b"!", "after the hook frame"),
        (b"H\0\0\0\5\0\0\0\1\x32", "version"),
        (b"H\0\0\0\2\0\0", "inside a field"),
    ],
)
def test_what_is_wrong_is_said(frame: bytes, problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        HookCallReader().receive(frame)
