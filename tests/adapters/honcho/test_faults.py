"""Bad days of the server: which of them are transient, permanent or ambiguous, and that nothing is lost or seen twice."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
import trio

from memoryd.core import OK, Entry, Outcome, Query
from memoryd.errors import BackendAmbiguous, BackendError, BackendPermanent, BackendTransient
from memoryd.testing.honcho import Fault, HonchoServer
from memoryd_honcho import HonchoBackend
from tests.adapters.honcho.conftest import Log, opened


def contents(honcho: HonchoServer) -> list[str]:
    return [message["content"] for message in honcho.messages()]


async def until_settled(backend: HonchoBackend, entries: Sequence[Entry], tries: int = 40) -> list[Outcome]:
    """What a runtime does: send again from the first event that has to be."""
    outcomes: list[Outcome] = []
    for _ in range(tries):
        try:
            found = await backend.apply(entries[len(outcomes) :])
        except BackendError:
            continue
        for outcome in found:
            if outcome.kind not in ("ok", "permanent"):
                break
            outcomes.append(outcome)
        if len(outcomes) == len(entries):
            return outcomes
    raise AssertionError(f"not settled after {tries} tries: {found}")


@pytest.mark.parametrize(
    ("fault", "kind", "reason"),
    [
        (Fault("lock", on="add_messages"), "transient", "ServerError"),
        (Fault("status", on="add_messages", status=503), "transient", "ServerError"),
        (Fault("status", on="add_messages", status=429, retry_after="7"), "transient", "RateLimitError"),
        (Fault("status", on="add_messages", status=504), "ambiguous", "ServerError"),
        (Fault("status", on="add_messages", status=404), "transient", "NotFoundError"),
        (Fault("status", on="add_messages", status=307), "transient", "APIError"),
        (Fault("status", on="add_messages", status=401), "transient", "AuthenticationError"),
        (Fault("lost", on="add_messages"), "ambiguous", "ConnectionError"),
        (Fault("reset", on="add_messages"), "ambiguous", "ConnectionError"),
        (Fault("half", on="add_messages"), "ambiguous", "ConnectionError"),
        (Fault("html", on="add_messages"), "ambiguous", "ConnectionError"),
        (Fault("empty", on="add_messages"), "ambiguous", "BadAnswer"),
    ],
    ids=lambda value: f"{value.name}-{value.status}" if isinstance(value, Fault) else "",
)
async def test_each_fault_has_its_class_and_loses_nothing(
    honcho: HonchoServer, backend: HonchoBackend, log: Log, fault: Fault, kind: str, reason: str
) -> None:
    await backend.apply([log.turn("before", "it")])
    entries = [log.turn(f"u{n}", f"a{n}") for n in range(3)]
    honcho.faults.append(fault)
    outcomes = await backend.apply(entries)
    assert {(outcome.kind, outcome.reason) for outcome in outcomes} == {(kind, reason)}
    assert set(await backend.apply(entries)) == {OK}
    assert contents(honcho) == ["before", "it", "u0", "a0", "u1", "a1", "u2", "a2"]


async def test_retry_after_is_passed_on(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    for status in (429, 503):
        honcho.faults.append(Fault("status", on="add_messages", status=status, retry_after="7"))
        (outcome,) = await backend.apply([log.turn("x", "y")])
        assert outcome.retry_after == 7.0


async def test_an_ambiguous_write_gets_time_to_arrive(honcho: HonchoServer, log: Log) -> None:
    async with opened(honcho.url, settle=12.5) as backend:
        honcho.faults.append(Fault("lost", on="add_messages"))
        (outcome,) = await backend.apply([log.turn("x", "y")])
        assert (outcome.kind, outcome.retry_after) == ("ambiguous", 12.5)


async def test_a_late_commit_is_seen_before_it_is_sent_again(honcho: HonchoServer, log: Log) -> None:
    async with opened(honcho.url, timeout=0.3) as backend:
        entries = [log.turn(f"u{n}", f"a{n}") for n in range(3)]
        honcho.faults.append(Fault("late", on="add_messages"))
        assert {outcome.kind for outcome in await backend.apply(entries)} == {"ambiguous"}
        assert contents(honcho) == []
        honcho.release()
        while not contents(honcho):
            await trio.sleep(0.01)
    async with opened(honcho.url) as backend:
        assert set(await backend.apply(entries)) == {OK}
    assert len(contents(honcho)) == 6


async def test_a_commit_that_comes_too_late_is_folded_by_readers(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entry = log.turn("zebra question", "zebra answer")
    honcho.faults.append(Fault("late", on="add_messages"))
    async with opened(honcho.url, timeout=0.3) as impatient:
        assert {outcome.kind for outcome in await impatient.apply([entry])} == {"ambiguous"}
    assert list(await backend.apply([entry])) == [OK]
    honcho.release()
    while len(contents(honcho)) < 4:
        await trio.sleep(0.01)
    hits = await backend.recall(Query("ann", "zebra"))
    assert [hit.id for hit in hits] == [entry.event.event_id.hex()]
    async with opened(honcho.url) as other:  # whoever looks next marks the copies
        await other.apply([entry])
    assert sum(message["metadata"].get("dup", False) for message in honcho.messages()) == 2


async def test_a_request_that_was_repeated_on_its_way(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    honcho.faults.append(Fault("twice", on="add_messages"))
    entry = log.turn("zebra", "x" * 20_000)
    await backend.apply([entry])
    assert len(contents(honcho)) > 4
    (hit,) = await backend.recall(Query("ann", "xxxxxx", limit=1))
    assert hit.text in ("zebra", "x" * 20_000)


async def test_a_server_that_drips_ends_at_the_deadline(honcho: HonchoServer, log: Log) -> None:
    async with opened(honcho.url, timeout=0.3, read_timeout=0.3) as backend:
        honcho.faults += [Fault("drip", on="add_messages"), Fault("drip", on="list_sessions", skip=1)]
        assert [outcome.kind for outcome in await backend.apply([log.turn("x", "y")])] == ["ambiguous"]
        with pytest.raises(BackendTransient, match="did not answer within"):
            await backend.retrieve("ann", "key")


async def test_a_database_that_is_down_and_comes_back(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entries = [log.turn("u", "a"), log.write("key", "value")]
    honcho.modes.database = False
    with pytest.raises(BackendTransient):
        await backend.apply(entries)
    assert not await backend.health()
    with pytest.raises(BackendTransient):
        await backend.retrieve("ann", "key")
    honcho.modes.database = True
    assert set(await backend.apply(entries)) == {OK}
    assert await backend.health()


async def test_an_outage_buries_nothing(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entry = log.turn("u", "a")
    honcho.faults.append(Fault("lock", times=200))
    for _ in range(15):
        with pytest.raises(BackendTransient):
            await backend.apply([entry])
    honcho.faults.clear()
    assert list(await backend.apply([entry])) == [OK]


async def test_a_restart_goes_unnoticed(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    await backend.apply([log.turn("before", "a")])
    honcho.stop()
    entries = [log.turn("during", "b")]
    assert {outcome.kind for outcome in await backend.apply(entries)} <= {"transient", "ambiguous"}
    honcho.start()
    assert set(await backend.apply(entries)) == {OK}
    assert contents(honcho) == ["before", "a", "during", "b"]


async def test_a_refused_connection_was_certainly_not_sent(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    await backend.apply([log.turn("a", "b")])
    honcho.stop()
    await backend.apply([log.turn("c", "d")])  # the first one may find the old connection
    outcomes = await backend.apply([log.turn("e", "f")])
    assert {(outcome.kind, outcome.reason) for outcome in outcomes} == {("transient", "ConnectionError")}
    honcho.start()


async def test_one_turn_that_is_refused_is_found_among_many(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entries = [log.turn(f"u{n}", f"a{n}") for n in range(30)]
    refuse(honcho, "u17", 422)
    outcomes = await until_settled(backend, entries)
    assert [outcome.kind for outcome in outcomes] == ["permanent" if n == 17 else "ok" for n in range(30)]
    assert outcomes[17].reason == "UnprocessableEntityError"
    assert contents(honcho) == [f"{role}{n}" for n in range(30) if n != 17 for role in "ua"]


async def test_one_turn_that_always_fails_with_500_is_found_among_many(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entries = [log.turn(f"u{n}", f"a{n}") for n in range(30)]
    refuse(honcho, "u17", 500)
    outcomes = await until_settled(backend, entries)
    assert [outcome.kind for outcome in outcomes] == ["permanent" if n == 17 else "ok" for n in range(30)]
    assert outcomes[17].reason == "ServerError"
    assert contents(honcho) == [f"{role}{n}" for n in range(30) if n != 17 for role in "ua"]


def refuse(honcho: HonchoServer, content: str, status: int) -> None:
    """Make the server refuse one content for good."""
    honcho.modes.refused[content] = status


async def test_the_text_of_a_422_is_nowhere(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    refuse(honcho, "my private words", 422)
    from memoryd_honcho._client import Row

    client = backend._need().client
    row = Row("u", "my private words", {}, datetime.now(UTC))
    with pytest.raises(BackendPermanent) as raised:
        await client.add_messages("s", [row])
    shown = "".join(traceback.format_exception(raised.value))
    assert "private words" not in shown
    assert "UnprocessableEntityError" in shown
    assert "value_error" in str(raised.value), "the rule is named"
    assert raised.value.__cause__ is not None


async def test_a_wrong_key_is_said_and_buries_nothing(honcho: HonchoServer, log: Log) -> None:
    honcho.modes.api_key = "right"
    async with opened(honcho.url) as backend:
        with pytest.raises(BackendTransient, match="HONCHO_API_KEY"):
            await backend.apply([log.turn("u", "a")])
        health = await backend.health()
        assert not health and "HONCHO_API_KEY" in health.detail


async def test_the_right_key_is_sent(honcho: HonchoServer, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    honcho.modes.api_key = "right"
    monkeypatch.setenv("HONCHO_API_KEY", "right")
    async with opened(honcho.url) as backend:
        assert list(await backend.apply([log.turn("u", "a")])) == [OK]
        assert await backend.health()


async def test_health_is_no_shallow_ok(honcho: HonchoServer, backend: HonchoBackend) -> None:
    assert await backend.health()
    assert honcho.count("health") == 0
    assert honcho.count("change_session") == honcho.count("list_sessions") == 1


async def test_a_server_that_takes_in_and_derives_nothing_says_so(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    assert not (await backend.health()).warning
    honcho.modes.worker = False
    await backend.apply([log.turn(f"u{n}", f"a{n}") for n in range(3)])
    health = await backend.health()
    assert health
    assert health.warning.startswith("3 of 3 pieces of work wait for the server's deriver, and none is in hand")
    honcho.modes.worker = True
    assert not (await backend.health()).warning
    honcho.faults.append(Fault("status", on="queue_status", status=404))
    assert (await backend.health()).warning == ""


async def test_an_address_that_is_nobodys(log: Log) -> None:
    with HonchoServer() as honcho:
        url = honcho.url
    async with opened(url) as backend:
        health = await backend.health()
        assert not health and "cannot be reached" in health.detail
        with pytest.raises(BackendTransient, match="cannot be reached"):
            await backend.recall(Query("ann", "x"))


async def test_cancelled_anywhere_it_goes_on_afterwards(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    entries = [log.turn(f"u{n}", f"a{n}") for n in range(5)]
    for on in ("add_messages", "make_peer", "list_sessions", "change_session"):
        honcho.faults.append(Fault("hang", on=on))
        with trio.move_on_after(0.1):
            await backend.apply(entries)
        honcho.release()
        honcho.faults.clear()
    for on in ("search", "list_sessions"):
        honcho.faults.append(Fault("hang", on=on))
        with trio.move_on_after(0.1) as scope:
            await (backend.recall(Query("ann", "x")) if on == "search" else backend.list_keys("ann"))
        assert scope.cancelled_caught
        honcho.release()
    assert set(await until_settled(backend, entries)) == {OK}
    assert contents(honcho) == [f"{role}{n}" for n in range(5) for role in "ua"]


async def test_reads_during_writes(honcho: HonchoServer, backend: HonchoBackend, log: Log) -> None:
    await backend.apply([log.turn("zebra", "ok")])

    async def read() -> None:
        for _ in range(5):
            assert await backend.recall(Query("ann", "zebra", limit=1))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(read)
        for number in range(10):
            assert set(await backend.apply([log.turn(f"u{number}", "zebra"), log.write("key", str(number))])) == {OK}


async def test_a_closed_backend_says_so_and_opens_again(honcho: HonchoServer, log: Log) -> None:
    async with opened(honcho.url) as backend:
        await backend.apply([log.turn("a", "b")])
    with pytest.raises(BackendTransient, match="not open"):
        await backend.recall(Query("ann", "a"))
    await backend.aclose()
    await backend.open()
    await backend.open()
    assert await backend.recall(Query("ann", "a"))
    await backend.aclose()


def test_ambiguous_is_only_what_may_have_been_written() -> None:
    from honcho.http import exceptions

    from memoryd_honcho._errors import mapped

    timeout = exceptions.TimeoutError("slow")
    assert isinstance(mapped(timeout, repeatable=False), BackendAmbiguous)
    assert isinstance(mapped(exceptions.TimeoutError("slow"), repeatable=True), BackendTransient)
