"""Turns at Honcho: what is written, in which order, and once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memoryd.core import OK, Erased, Query, Scope, SessionMark, Turn, new_event_id
from memoryd.testing.honcho import HonchoServer
from memoryd_honcho import HonchoBackend
from tests.adapters.honcho.conftest import Log, opened

pytestmark = pytest.mark.usefixtures("honcho")


async def test_a_turn_is_two_messages(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entry = log.turn("Where is it?", "In Oslo.", at=1_700_000_000_123_456)
    assert list(await backend.apply([entry])) == [OK]
    asked, answered = honcho.messages()
    assert (asked["content"], answered["content"]) == ("Where is it?", "In Oslo.")
    assert [message["metadata"]["r"] for message in (asked, answered)] == ["user", "assistant"]
    assert {message["metadata"]["ev"] for message in (asked, answered)} == {entry.event.event_id.hex()}
    assert datetime.fromisoformat(asked["created_at"]) == datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)
    assert answered["peer_id"] == "memoryd-assistant"


async def test_nothing_is_derived_of_the_assistant(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    await backend.apply([log.turn("a", "b"), log.turn("c", "d")])
    assert "memoryd-assistant" not in honcho.space.jobs
    assert len(honcho.space.jobs) == 2


async def test_only_texts_and_ids_leave(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    event = Turn(
        new_event_id(), Scope(user="ann@example.com", session="s", agent="agent-7", workspace="/home/ann/client", platform="shell"),
        5, "hello", "world", turn_id="turn-77", message_ids=("message-88",), parts=("image",),
    )  # fmt: skip
    await backend.apply([log.add(event)])
    await backend.recall(Query("ann@example.com", "hello", labels={"agent": "agent-7"}))
    sent = honcho.everything_received()
    assert b"hello" in sent
    for name in (b"ann@example.com", b"agent-7", b"/home/ann", b"turn-77", b"message-88", b"image"):
        assert name not in sent


async def test_kinds_of_parts_leave_only_when_asked_for(honcho: HonchoServer, log: Log) -> None:
    event = Turn(new_event_id(), Scope(user="ann", session="s"), 5, "hello", "", parts=("image", "tool_use"))
    async with opened(honcho.url, send_tools=True) as backend:
        await backend.apply([log.add(event)])
    assert honcho.messages()[0]["metadata"]["parts"] == ["image", "tool_use"]


async def test_many_turns_go_in_few_calls_in_order(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    for _ in range(5):
        assert set(await backend.apply([log.turn(f"u{log.seq}", f"a{log.seq}") for _ in range(100)])) == {OK}
    assert [m["content"] for m in honcho.messages()] == [f"{role}{n}" for n in range(500) for role in "ua"]
    assert honcho.count("add_messages") == 10
    assert len(honcho.received) < 20


async def test_applying_again_changes_nothing(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entries = [log.turn(f"u{n}", f"a{n}", session=f"s{n % 3}") for n in range(20)]
    for _ in range(3):
        assert set(await backend.apply(entries)) == {OK}
    assert set(await backend.apply(entries[5:15])) == {OK}
    async with opened(honcho.url) as other:  # another process
        assert set(await other.apply(entries)) == {OK}
    assert len(honcho.messages()) == 40


async def test_sessions_and_users_are_apart(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    places = [("ann", "s"), ("bob", "s"), ("ann", "t"), ("ann", None), ("a.b", "s"), ("a-b", "s"), ("*", "s"), ("in", "*")]
    await backend.apply([log.turn("same words", of=user, session=session) for user, session in places])
    assert len({message["session_id"] for message in honcho.messages()}) == len(places)
    for user, count in {"ann": 3, "bob": 1, "a.b": 1, "a-b": 1, "*": 1, "in": 1, "nobody": 0}.items():
        assert len(await backend.recall(Query(user, "same words"))) == count


async def test_profiles_in_one_workspace_are_apart(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    await backend.apply([log.turn("my secret garden"), log.write("key", "value")])
    async with opened(honcho.url, key=b"other profile's key".ljust(32)) as other:
        assert await other.recall(Query("ann", "garden")) == []
        assert await other.list_keys("ann") == []


HOSTILE = {
    "poison": "a <|endoftext|> b <|fim_prefix|> c <|fim_suffix|><|fim_middle|><|endofprompt|>",
    "escaped already": "a <\u200b|endoftext|> {\u200b0000}",
    "nul": "zero\0byte",
    "surrogates": "lone \ud83d and \udc88, reversed \udc88\ud83d",
    "blank": " \n\t ",
    "emoji run": "😀" * 5_000,
    "a megabyte": "lorem ipsum " * 90_000,
    "right to left": "\u202eabc\u202d",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
async def test_hostile_texts_come_back_exactly(honcho: HonchoServer, backend: HonchoBackend, log: Log, text: str) -> None:
    marked = f"{text} findable" if text.strip() else text
    assert list(await backend.apply([log.turn(marked, text)])) == [OK]
    (hit,) = await backend.recall(Query("ann", "findable", limit=1))
    assert hit.text in (marked, text)
    assert max(len(message["content"]) for message in honcho.messages()) <= 25_000


async def test_what_is_no_turn_is_settled(backend: HonchoBackend, honcho: HonchoServer, log: Log) -> None:
    mark = SessionMark(new_event_id(), Scope(user="ann", session="s"), 1, "start", {"secret": "plan"})
    assert set(await backend.apply([log.add(mark), log.add(Erased(new_event_id(), 1))])) == {OK}
    assert honcho.messages() == []
    assert b"plan" not in honcho.everything_received()


async def test_an_event_without_a_user_is_refused_alone(backend: HonchoBackend, honcho: HonchoServer, log: Log) -> None:
    lost = log.add(Turn(new_event_id(), Scope(session="s"), 1, "whose?", ""))
    outcomes = await backend.apply([log.turn("one"), lost, log.turn("two")])
    assert [outcome.kind for outcome in outcomes] == ["ok", "permanent", "ok"]
    assert [message["content"] for message in honcho.messages()] == ["one", "two"]


async def test_a_new_epoch_moves_the_marks(backend: HonchoBackend, honcho: HonchoServer, log: Log) -> None:
    """A restored log has other places for the same events: forgetting by place has to find them."""
    entry = log.turn("keep", "this")
    await backend.apply([entry])
    restored = Log("e2")
    restored.turn("something else")
    again = restored.add(entry.event)
    await backend.apply([again])
    assert {message["metadata"]["q"] for message in honcho.messages()} == {"e2:2"}
    await backend.apply([restored.forget(again)])
    assert await backend.recall(Query("ann", "keep")) == []
