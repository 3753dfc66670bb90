"""A connection, both sides, without a socket: any split of the bytes gives the same events, and garbage costs the connection only."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.core import Accepted, GivenEvent, Scope, current_scope, given_event
from memoryd.errors import (
    ConnectionLost,
    DaemonBusy,
    DaemonUnavailable,
    InvalidInput,
    ProtocolError,
    ProtocolMismatch,
    ScopeMissing,
)
from memoryd.wire import (
    CLIENT,
    MEANING,
    SERVER,
    Answer,
    Call,
    Caller,
    Connection,
    Ended,
    Event,
    Greeting,
    HookCall,
    HookReply,
    Progress,
    Rejected,
    Welcome,
    common_version,
    make_record,
)


def request(method: str, id: Any = 1, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if id is None else {**message, "id": id}).encode() + b"\n"


HELLO = request("hello", 0, protocol=[1, 1], client="a test", home="/h", profile="default")


def opened(**limits: int) -> Connection:
    connection = Connection(**limits)
    [greeting] = connection.receive(HELLO)
    assert isinstance(greeting, Greeting)
    connection.welcome(greeting, Welcome(1))
    return connection


def answers(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def only_call(events: list[Event]) -> Call:
    [call] = events
    assert isinstance(call, Call)
    return call


# -- the handshake ----------------------------------------------------------------------------------------------------------


def test_a_conversation() -> None:
    server, client = Connection(), Caller(make_record)
    [greeting] = server.receive(client.hello("/h", "pröfile"))
    assert isinstance(greeting, Greeting)
    assert (greeting.home, greeting.profile, greeting.version) == ("/h", "pröfile", 1)
    [welcome] = client.receive(server.welcome(greeting, Welcome(7, "/h", "pröfile", deadlines={"recall": 2.0})))
    assert isinstance(welcome, Answer)
    assert (welcome.id, welcome.value["pid"], welcome.value["deadlines"]) == (0, 7, {"recall": 2.0})

    id, frame = client.call("verify", {}, scope={"user": "ada"}, progress=True)
    call = only_call(server.receive(frame))
    assert (call.method.name, call.scope, call.wants_progress) == ("verify", Scope(user="ada"), True)
    assert client.receive(server.progress(call, 1, 2)) == [Progress(id, 1, 2)]
    assert client.receive(server.answer(call, Accepted("off"))) == [Answer(id, Accepted("off"))]

    id, frame = client.call("recall", {"query": "x"})
    [refused] = client.receive(server.fail(only_call(server.receive(frame)), ScopeMissing("a user is missing")))
    assert isinstance(refused, Answer)
    with pytest.raises(ScopeMissing, match="a user is missing"):
        refused.result()

    call = only_call(server.receive(client.call("ping", {})[1]))
    assert client.receive(server.closing()) == []
    assert (server.state, client.state) == ("closing", "closing")
    assert client.receive(server.answer(call, None)) == [Answer(3, None)]
    with pytest.raises(ProtocolError):
        client.call("ping", {})
    assert server.receive(b"") == [Ended()]
    assert server.is_over
    with pytest.raises(ConnectionLost):
        client.receive(b"")


@pytest.mark.parametrize(
    ("asked", "says"),
    [([1, 1], None), ([1, 99], None), ([9, 10], "the daemon is older"), ([0, 1], "oldest"), ("1", "oldest"), (None, "oldest"), ([2, 1], "oldest")],
)
def test_versions(asked: Any, says: str | None) -> None:
    connection = Connection()
    [event] = connection.receive(request("hello", 0, protocol=asked))
    if says is None:
        assert isinstance(event, Greeting) and event.version == 1
        return
    assert isinstance(event, Rejected) and says in answers(event.answer)[0]["error"]["message"]
    assert connection.is_over
    [answer] = Caller_in_greeting().receive(event.answer)
    assert isinstance(answer, Answer) and isinstance(answer.error, (ProtocolMismatch, ProtocolError))


def Caller_in_greeting() -> Caller:
    client = Caller(make_record)
    client.hello(None, None)
    return client


def test_an_older_client_is_told_so() -> None:
    assert common_version([1, 3], (2, 4)) == 3
    with pytest.raises(ProtocolMismatch, match="client is older than the daemon.*upgrade or restart the program that calls"):
        common_version([1, 1], (2, 3))


def test_a_call_before_hello_costs_the_connection() -> None:
    for frame in (request("ping"), b"[" + request("ping").strip() + b"]\n"):
        connection = Connection()
        [event] = connection.receive(frame)
        assert isinstance(event, Rejected) and "hello" in str(event.error)
        assert connection.is_over and connection.receive(HELLO) == []


def test_a_second_hello_costs_the_connection() -> None:
    connection = opened()
    assert isinstance(connection.receive(HELLO)[0], Rejected)
    assert connection.is_over


def test_a_refused_profile_ends_the_connection() -> None:
    connection, client = Connection(), Caller(make_record)
    [greeting] = connection.receive(client.hello(None, "p"))
    assert isinstance(greeting, Greeting)
    [answer] = client.receive(connection.refuse(greeting, InvalidInput("profile", "no")))
    assert isinstance(answer, Answer) and isinstance(answer.error, InvalidInput)
    assert connection.is_over and client.state == "closed"


# -- calls ------------------------------------------------------------------------------------------------------------------


class Target:
    """Says what a call saw."""

    def ping(self) -> Any:
        return current_scope(), given_event()

    def sync_turn(self, user: str, assistant: str, **rest: Any) -> Any:
        return user, assistant, rest, current_scope(), given_event()

    async def store(self, key: str, value: str) -> Any:
        return key, value, current_scope(), given_event()


async def test_a_call_runs_under_its_scope_and_event_id() -> None:
    connection, event_id = opened(), "0f" * 16
    scope = {"user": "ada", "session": "s\ud800", "private": False}
    frame = request("sync_turn", None, user="hi", assistant="ho", turn_id="t", scope=scope, event_id=event_id, retry=5)
    call = only_call(connection.receive(frame))
    assert call.is_notification and connection.unanswered == 0
    given = GivenEvent(bytes.fromhex(event_id), 5)
    assert call.run(Target()) == ("hi", "ho", {"turn_id": "t"}, Scope(user="ada", session="s\ud800", private=False), given)
    assert (current_scope(), given_event()) == (Scope(), None)
    assert connection.answer(call, 1) == b""

    call = only_call(connection.receive(request("store", 2, key="k", value="v", scope={"user": "ada"}, event_id=event_id)))
    assert await call.run(Target()) == ("k", "v", Scope(user="ada"), GivenEvent(bytes.fromhex(event_id)))
    call = only_call(connection.receive(request("ping", 3, event_id=event_id)))
    assert call.run(Target()) == (Scope(), None)  # it makes no event


@pytest.mark.parametrize(
    ("method", "params", "kind"),
    [
        ("nothing", {}, ProtocolMismatch),
        ("retrieve", {}, InvalidInput),
        ("retrieve", {"key": "k", "kee": 1}, InvalidInput),
        ("retrieve", {"key": "k", "scope": {"user": ""}}, InvalidInput),
        ("retrieve", {"key": "k", "scope": {"planet": "x"}}, InvalidInput),
        ("retrieve", {"key": "k", "scope": [1]}, InvalidInput),
        ("delete", {"key": "k", "event_id": "x"}, InvalidInput),
        ("delete", {"key": "k", "event_id": "00" * 16, "retry": -1}, InvalidInput),
        ("settled", {"accepted": {"$": "Scope"}, "timeout": {"$time": "x"}}, ProtocolError),
    ],
)
def test_a_wrong_call_gets_an_error_and_the_connection_goes_on(method: str, params: dict[str, Any], kind: type[Exception]) -> None:
    connection, client = opened(), Caller(make_record)
    client._machine.state = "open"
    [event] = connection.receive(request(method, 1, **params))
    assert isinstance(event, Rejected)
    [answer] = client.receive(event.answer)
    assert isinstance(answer, Answer) and type(answer.error) is kind
    [quiet] = connection.receive(request(method, None, **params))
    assert isinstance(quiet, Rejected) and not quiet.answer  # a notification is never answered
    assert only_call(connection.receive(request("ping", 2))).id == 2


def test_a_batch_is_answered_together_and_in_any_order() -> None:
    connection = opened()
    items = [request("ping", 1), request("nothing", 2), request("ping", None), request("retrieve", 3, key="k"), b"7"]
    events = connection.receive(b"[" + b",".join(item.strip() for item in items) + b"]\n")
    assert [type(event).__name__ for event in events] == ["Call", "Rejected", "Call", "Call", "Rejected"]
    one, wrong, silent, slow, odd = events
    assert isinstance(one, Call) and isinstance(silent, Call) and isinstance(slow, Call)
    assert isinstance(wrong, Rejected) and isinstance(odd, Rejected) and not wrong.answer and not odd.answer
    assert connection.answer(slow, None) == b"" == connection.answer(silent, None)
    [found] = answers(connection.answer(one, None))
    assert [(item["id"], "error" in item) for item in found] == [(2, True), (None, True), (3, False), (1, False)]
    assert connection.unanswered == 0


def test_batches_without_a_call() -> None:
    [event] = (connection := opened()).receive(b"[]\n")
    assert isinstance(event, Rejected) and connection.is_over
    [event] = (connection := opened()).receive(b"[1]\n")
    assert isinstance(event, Rejected) and answers(event.answer)[0][0]["error"]["code"] == -32600
    assert not connection.is_over
    [event] = connection.receive(b"[" + request("ping", None).strip() + b"]\n")
    assert isinstance(event, Call) and connection.answer(event, None) == b""


def test_as_many_calls_as_allowed_are_in_flight() -> None:
    connection = opened(in_flight=2)
    first, second, third = connection.receive(b"".join(request("ping", n) for n in range(3)))
    assert isinstance(first, Call) and isinstance(second, Call)
    assert isinstance(third, Rejected) and isinstance(third.error, DaemonBusy)
    connection.answer(first, None)
    assert isinstance(connection.receive(request("ping", 3))[0], Call)
    assert isinstance(connection.receive(request("ping", None))[0], Call)  # a notification is done when it is read


def test_while_closing_new_calls_are_refused_and_old_ones_answered() -> None:
    connection = opened()
    call = only_call(connection.receive(request("recall", 1, query="x")))
    assert answers(connection.closing())[0]["method"] == "closing"
    [event] = connection.receive(request("ping", 2))
    assert isinstance(event, Rejected) and isinstance(event.error, DaemonUnavailable)
    assert answers(connection.answer(call, None))[0]["id"] == 1


def test_a_client_that_ends_its_side_is_answered() -> None:
    connection = opened()
    call, ended = connection.receive(request("recall", 1, query="x")) + connection.receive(b"")
    assert isinstance(call, Call) and isinstance(ended, Ended) and not connection.is_over
    assert answers(connection.answer(call, None))[0]["id"] == 1
    assert connection.is_over


def test_a_frame_above_the_limit_costs_the_connection_before_it_is_whole() -> None:
    connection = opened(frame=200)
    assert connection.receive(b"x" * 200) == []
    assert connection.partial == 200
    [event] = connection.receive(b"x")
    assert isinstance(event, Rejected) and "200 bytes" in str(event.error)
    assert connection.is_over and connection.partial == 0


def test_what_is_answered_after_the_end_is_dropped() -> None:
    connection = opened()
    call = only_call(connection.receive(request("recall", 1, query="x")))
    connection.receive(b"nonsense\n")
    assert connection.answer(call, 1) == b"" == connection.closing() == connection.progress(call, 1, 2)


# -- hook frames ------------------------------------------------------------------------------------------------------------


@given(st.integers(1, 40))
def test_a_hook_frame_is_served_on_the_same_socket(size: int) -> None:
    connection, call = Connection(), HookCall("claude", "PreCompact", "/w", {"A": "b"}, b"{}\n{}")
    frame = call.encode()
    events = [event for n in range(0, len(frame), size) for event in connection.receive(frame[n : n + size])]
    assert events == [call] and connection.receive(b"") == [Ended()] and not connection.is_over
    assert connection.reply(HookReply(2, b"", b"no")) == HookReply(2, b"", b"no").encode()
    assert connection.is_over


def test_a_wrong_hook_frame_gets_no_answer() -> None:
    connection = Connection()
    [event] = connection.receive(b"H\xff\xff\xff\xff")
    assert isinstance(event, Rejected) and not event.answer and connection.is_over


# -- any bytes --------------------------------------------------------------------------------------------------------------

FRAMES = st.sampled_from(
    [
        request("ping", 1), request("ping", "two"), request("ping", None), request("nothing", 3), b"\r\n", b"\n",
        request("store", 5, key="k", value="\ud800 \U0001f600"), b"[" + request("ping", 6).strip() + b"]\r\n", b"[1,2]\n",
        request("sync_turn", None, user="x" * 50, assistant=""), request("retrieve", 9, key="x" * 200),
    ]
)  # fmt: skip


def told(events: list[Event]) -> list[Any]:
    return [
        (type(event).__name__, getattr(event, "id", None), getattr(event, "arguments", None), getattr(event, "answer", None))
        for event in events
    ]


@given(st.lists(FRAMES, max_size=8, unique=True), st.lists(st.integers(0, 400), max_size=20))
def test_any_split_gives_the_same_events(frames: list[bytes], cuts: list[int]) -> None:
    data = b"".join(frames)
    whole, parts = opened(frame=200), opened(frame=200)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(places) if a < b]
    assert told(whole.receive(data) if data else []) == told([event for piece in pieces for event in parts.receive(piece)])


GARBAGE = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=30).map(lambda data: data + b"\n"),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "error", "result", "$"]), inner, max_size=4),
        max_leaves=8,
    ).map(lambda data: json.dumps(data).encode() + b"\n"),
    FRAMES,
    st.just(HELLO),
    st.sampled_from([b"[" * 100_000 + b"\n", b'{"a":' * 100_000 + b"\n", b'"\\ud800"\n', b'{"jsonrpc":"2.0","method":"ping","id":"\\ud800"}\n', b"1e999\n", b"9" * 5000 + b"\n", b"{}\n", b"\xff\n"]),
)


@given(st.lists(GARBAGE, max_size=6), st.booleans())
def test_the_server_raises_for_no_bytes(pieces: list[bytes], greeted: bool) -> None:
    connection = opened() if greeted else Connection()
    for piece in [*pieces, b""]:
        for event in connection.receive(piece):
            if isinstance(event, Rejected) and event.answer:
                answers(event.answer)
            if isinstance(event, Greeting):
                connection.welcome(event, Welcome(1))
    assert connection.receive(b"x") == []


@given(st.lists(GARBAGE, max_size=6))
def test_the_client_raises_protocol_errors_only(pieces: list[bytes]) -> None:
    client = Caller(make_record, load=msgspec.json.decode)
    client.hello(None, None)
    try:
        for piece in pieces:
            client.receive(piece or b"\n")
    except (ProtocolError, ConnectionLost):
        pass


def test_every_state_is_explained_and_reached() -> None:
    for table in (SERVER, CLIENT):
        assert set(table) <= set(MEANING)
        reached = {"new"} | {state for steps in table.values() for state in steps.values()}
        assert reached == set(table)
