"""Clients of a real daemon: the runtime's methods, values and errors; a daemon that dies, stands still or comes back."""

from __future__ import annotations

import inspect
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio

import memoryd
from memoryd.client import Client, Held, blocking
from memoryd.errors import (
    CheckpointBlocked,
    CheckpointNotFound,
    ClosedError,
    ConnectionLost,
    DaemonUnavailable,
    DeadlineExceeded,
    ForkedError,
    InvalidInput,
    JournalUnavailable,
    MemorydError,
    NotDurable,
    ScopeConflict,
    ScopeMissing,
)
from memoryd.store import Options, connect, profile_directory
from memoryd.wire import METHODS
from tests.daemon.harness import SCOPE, Daemon, frame, logged
from tests.daemon.harness import until as wait_until
from tests.guarantees.test_g4_never_in_the_way import CALLS

QUIET = "[logging]\nlevel = 'off'\n"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon"), config=QUIET) as found:
        yield found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that a test may kill."""
    with Daemon(tmp_path, config=QUIET) as found:
        yield found


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that stands still is not waited for as long as one that may only be slow."""
    monkeypatch.setattr("memoryd.client._attempts._SLACK", 0.3)
    monkeypatch.setattr("memoryd.client._line._ASKED", 0.3)


def client_of(daemon: Daemon, profile: str = "default") -> Client:
    return Client(daemon.home, profile, socket=daemon.path)


async def settled(rt: Client, accepted: memoryd.Accepted) -> memoryd.Accepted:
    """On a machine that does much else the daemon may need more than its 5 ms."""
    return await rt.settled(accepted, 60)


# -- the same interface -----------------------------------------------------------------------------------------------------

ONLY_HERE: dict[type, set[str]] = {memoryd.Runtime: {"last_flush"}, Client: {"aclose"}, blocking.Client: {"close", "scope"}}


def methods(door: type) -> dict[str, Callable[..., Any]]:
    found = {name: method for name, method in inspect.getmembers(door, inspect.isfunction) if not name.startswith("_")}
    assert ONLY_HERE[door] <= set(found)
    return {name: method for name, method in found.items() if name not in ONLY_HERE[door]}


@pytest.mark.parametrize("door", [Client, blocking.Client])
def test_a_client_has_the_methods_of_the_runtime(door: type) -> None:
    assert set(methods(door)) == set(methods(memoryd.Runtime))
    for name, method in methods(memoryd.Runtime).items():
        ours = methods(door)[name]
        assert shape(ours) == shape(method), name
        assert inspect.iscoroutinefunction(ours) == (door is Client and inspect.iscoroutinefunction(method)), name
        if door is Client:
            assert inspect.signature(ours).return_annotation == inspect.signature(method).return_annotation


def shape(method: Callable[..., Any]) -> list[tuple[str, object, object]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()]


# -- every method, through a real daemon --------------------------------------------------------------------------------------


async def test_every_method_through_the_daemon(daemon: Daemon) -> None:
    """What comes back is equal to what a runtime of the same profile says."""
    async with client_of(daemon, "all") as rt:
        with memoryd.scope(user="ada", session="s", agent="a\ud800", workspace="w"):
            assert (await settled(rt, rt.mark_session("start", {"$odd": [1.5]}))).state == "journaled"
            at = datetime(2026, 5, 1, 12, tzinfo=UTC)
            turn = await settled(rt, rt.sync_turn("zebra \ud800 stripes", "noted", messages=[{"role": "user", "id": "m1", "content": [{"type": "image"}]}], turn_id="t", created_at=at))
            assert await settled(rt, rt.sync_turn("zebra", "noted", turn_id="t")) == memoryd.Accepted("journaled", turn.seq, turn.event_id, "duplicate")
            assert await rt.settled(turn, 1) == turn
            rt.queue_prefetch("zebra")
            stored = await rt.store("city", "Oslo", {"type": "place", "$time": "x"})
            assert (stored.applied, (await rt.delete("gone")).applied) == (True, True)
            assert bool(await rt.drain()) and await rt.catch_up(5) == 0
            await rt.flush()
            hits = await rt.recall("zebra", 5, as_of=None, labels={"workspace": "w"})
            assert [(hit.text, hit.at, hit.labels["agent"]) for hit in hits] == [("zebra \ud800 stripes", at, "a\ud800")]
            assert "zebra" in (await rt.prefetch("zebra")).text
            assert await rt.find(turn.event_id) is not None
            memory = await rt.retrieve("city")
            assert memory is not None and memory.metadata == {"type": "place", "$time": "x"}
            assert await rt.query("osl") == await rt.list_memories() == [memory]
            assert await rt.list_keys() == ["city"]
            assert (await rt.edit(memory.id, "Rome")).applied
            assert [version.value for version in await rt.history("city")] == ["Rome", "Oslo"]
            receipt = await rt.checkpoint([{"role": "user", "content": "hi \udc00"}, 7], host="h", source=b"raw\xff")
            assert (receipt.verdict, receipt.rows, receipt.degraded) == ("archived", 2, 1)
            assert [info.id for info in await rt.checkpoints()] == [receipt.id]
            assert (await rt.checkpoint_info(receipt.id[:12])).id == receipt.id
            restored = await rt.restore(receipt.id, full=True)
            assert restored.source == b"raw\xff" and len(restored.rows) == 2
            seen: list[tuple[int, int]] = []
            assert (await rt.verify(on_progress=lambda done, total: seen.append((done, total)))).ok
            assert seen and seen[-1][0] == seen[-1][1]
            assert rt.dead_letters() == []
            assert (await rt.status()).pid == daemon.pid
            assert (rt.profile, rt.home, rt.backend.name, rt.config.backend) == ("all", daemon.home, "local", "local")
            assert (await rt.forget(key="city")).erased == 2
            assert await rt.retrieve("city") is None


def test_every_method_for_threads(daemon: Daemon) -> None:
    with blocking.Client(daemon.home, "threads", socket=daemon.path) as memory, memory.scope(user="ada", session="s"):
        turn = memory.settled(memory.sync_turn("zebra \ud800", "noted", created_at=datetime(2026, 5, 1, tzinfo=UTC)), 60)
        assert turn.state == "journaled" and "zebra" not in repr(turn)
        assert memory.settled(memory.mark_session("end"), 60).seq == turn.seq + 1
        memory.queue_prefetch("zebra")
        assert memory.settled(turn, 1) == turn
        assert memory.store("city", "Oslo").applied and memory.delete("gone").applied
        assert bool(memory.drain()) and memory.catch_up(5) == 0
        memory.flush()
        [hit] = memory.recall("zebra")
        assert (hit.text, hit.at.year, hit.session) == ("zebra \ud800", 2026, "s")
        assert "zebra" in memory.prefetch("zebra").text and memory.find(turn.event_id).id == turn.event_id
        assert memory.retrieve("city").value == "Oslo" == memory.query("osl")[0].value == memory.list_memories()[0].value
        assert memory.list_keys() == ["city"]
        assert memory.edit(memory.retrieve("city").id, "Rome").applied and len(memory.history("city")) == 2
        receipt = memory.checkpoint([{"role": "user", "content": "hi"}])
        assert receipt and receipt.id == memory.checkpoints()[0].id == memory.checkpoint_info(receipt.id).id
        assert memory.restore(receipt.id).rows == (b'{"content":"hi","role":"user"}',)
        assert memory.verify().ok and memory.dead_letters() == []
        assert (memory.status().pid, memory.profile, memory.home, memory.backend.name) == (daemon.pid, "threads", daemon.home, "local")
        with memoryd.scope(user="bob"):  # the one of memoryd counts too, under the client's own
            assert memory.list_keys() == ["city"]
        assert memory.forget(everything=True).erased > 0


def test_all_methods_are_tried_above() -> None:
    text = inspect.getsource(test_every_method_through_the_daemon) + inspect.getsource(test_every_method_for_threads)
    assert [name for name, method in METHODS.items() if method.of == "profile" and text.count(f".{name}(") < 2] == []


async def test_an_error_is_the_one_that_the_runtime_raises(daemon: Daemon) -> None:
    async with client_of(daemon, "errors") as rt:
        with pytest.raises(ScopeMissing, match="memoryd.scope"):
            rt.sync_turn("zebra", "ok")
        with memoryd.scope(user="ada", session="s"):
            with pytest.raises(InvalidInput) as caught:
                await rt.store("", "v")
            assert (caught.value.field, caught.value.problem) == ("key", "must not be empty")
            with pytest.raises(InvalidInput, match="metadata.a: holds a object"):
                await rt.store("k", "v", {"a": object()})
            with pytest.raises(InvalidInput, match="limit"):
                await rt.recall("x", -1)
            with pytest.raises(InvalidInput):
                rt.sync_turn(5, "ok")  # type: ignore[arg-type]
            with pytest.raises(CheckpointNotFound):
                await rt.restore("00" * 16)
            with memoryd.scope(profile="another"), pytest.raises(ScopeConflict):
                await rt.list_keys()
            assert (await settled(rt, rt.sync_turn("still", "ok"))).state == "journaled"


async def test_many_calls_at_once_and_one_that_is_cancelled(daemon: Daemon) -> None:
    async with client_of(daemon, "many") as rt:
        with memoryd.scope(user="ada", session="s"):

            async def one(n: int) -> None:
                await rt.store(f"k{n}", "v")

            async with trio.open_nursery() as nursery:
                for n in range(20):
                    nursery.start_soon(one, n)
            assert len(await rt.list_keys()) == 20
            with trio.move_on_after(0.0) as scope:
                await rt.recall("anything")
            assert scope.cancelled_caught
            assert len(await rt.list_keys()) == 20


def test_threads_share_a_client(daemon: Daemon) -> None:
    with blocking.Client(daemon.home, "shared", socket=daemon.path) as memory:

        def work(n: int) -> None:
            with memory.scope(user="ada", session=f"s{n}"):
                for k in range(20):
                    memory.sync_turn(f"zebra {n} {k}", "ok")
                    memory.list_keys()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        memory.flush()
    assert len(logged(daemon.home, "shared")) == 160


# -- bad days ---------------------------------------------------------------------------------------------------------------


async def test_without_a_daemon(tmp_path: Path) -> None:
    with pytest.raises(DaemonUnavailable, match="memoryd serve"):
        async with Client(tmp_path, socket=tmp_path / "no.sock"):
            pass
    (tmp_path / "file").write_text("")
    with pytest.raises(DaemonUnavailable):
        blocking.Client(tmp_path, socket=tmp_path / "file")


async def test_a_daemon_that_restarts_is_found_again(own: Daemon) -> None:
    async with client_of(own) as rt:
        with memoryd.scope(user="ada", session="s"):
            rt.sync_turn("one", "ok")
            await rt.store("k", "v")
            own.kill()
            held = rt.sync_turn("two", "ok")
            assert (held.state, held.seq, held.reason) == ("held", None, "daemon")
            later = rt.sync_turn("three", "ok")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, own.start)
                assert await rt.retrieve("k") is not None  # a call waits as long as a restart takes
            settled = await rt.settled(held, 30)
            assert (settled.state, settled.event_id) == ("journaled", held.event_id)
            assert (await rt.settled(later, 30)).state == "journaled"
            await rt.flush()
    assert list(logged(own.home).values()) == ["one", "two", "three"]


async def test_a_daemon_killed_again_and_again_takes_each_turn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.client._attempts.AWAY", 60.0)  # this machine may be slow to start it again
    total, stores = 400, 100
    with Daemon(tmp_path, config=QUIET + "[deadlines]\nstore = 60.0\n") as own:
        await killed_again_and_again(own, total, stores)


async def killed_again_and_again(own: Daemon, total: int, stores: int) -> None:
    async with client_of(own) as rt:
        with memoryd.scope(user="ada", session="s"):

            async def trouble() -> None:
                for _ in range(3):
                    await trio.sleep(0.15)
                    own.kill()
                    await trio.to_thread.run_sync(own.start)

            async def store() -> None:
                for n in range(stores):
                    assert (await rt.store("k", f"value {n}")).accepted.state in ("journaled", "held")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(trouble)
                nursery.start_soon(store)
                accepted = []
                for n in range(total):
                    accepted.append(rt.sync_turn(f"turn {n}", "ok"))
                    await trio.sleep(0.002)
            settled = [await rt.settled(one, 60) for one in accepted]
            assert {one.state for one in settled} == {"journaled"}
            assert [version.value for version in await rt.history("k")] == [f"value {n}" for n in reversed(range(stores))]
    found = logged(own.home)
    assert list(found.values()) == [f"turn {n}" for n in range(total)]  # none lost, none doubled, in order
    assert list(found) == [one.event_id for one in settled]


async def test_a_daemon_that_stands_still(own: Daemon, brief: None) -> None:
    async with client_of(own) as rt:
        with memoryd.scope(user="ada", session="s"):
            rt.sync_turn("one", "ok")
            own.signal(signal.SIGSTOP)
            try:
                held = [rt.sync_turn(f"held {n}", "ok") for n in range(50)]
                assert {one.state for one in held} == {"held"}
                context = await rt.prefetch("one")
                assert (context.text, context.complete) == ("", False)
                with pytest.raises(DeadlineExceeded):
                    await rt.catch_up(0.1)
                with pytest.raises(NotDurable):
                    await rt.flush(0.1)
            finally:
                own.signal(signal.SIGCONT)
            assert {(await rt.settled(one, 60)).state for one in held} == {"journaled"}
    assert list(logged(own.home).values()) == ["one", *(f"held {n}" for n in range(50))]


async def test_every_call_ends_while_the_daemon_stands_still(tmp_path: Path, brief: None) -> None:
    names = sorted(set(CALLS) - {"last_flush"})
    ended: list[str] = []

    async def one(rt: Client, name: str) -> None:
        try:
            answer = CALLS[name](rt)  # type: ignore[arg-type]
            if inspect.isawaitable(answer):
                await answer
        except MemorydError:
            pass  # a typed refusal is an answer
        ended.append(name)

    short = "".join(f"{name} = 0.2\n" for name in ("recall", "retrieve", "query", "store", "flush", "drain", "close", "checkpoint"))
    with Daemon(tmp_path, config=QUIET + "[deadlines]\n" + short) as own, memoryd.scope(user="ada", session="s"), pytest.raises(NotDurable):
        async with client_of(own) as rt:
            own.signal(signal.SIGSTOP)
            with trio.fail_after(60):  # a hang, not a measurement
                async with trio.open_nursery() as nursery:
                    for name in names:
                        nursery.start_soon(one, rt, name)
                    while set(names) - set(ended) - {"verify"}:  # it may be silent for longer
                        await trio.sleep(0.05)
                    nursery.cancel_scope.cancel()
            own.kill()


async def test_a_daemon_that_does_not_come_back(own: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.client._attempts.AWAY", 0.3)
    rt = client_of(own)
    await rt.__aenter__()
    rt._welcome = {**rt._welcome, "deadlines": {"close": 0.2, "recall": 0.1}}  # type: ignore[dict-item]
    with memoryd.scope(user="ada", session="s"):
        own.kill()
        assert rt.sync_turn("lost", "ok").state == "held"
        with pytest.raises((DaemonUnavailable, ConnectionLost)):
            await rt.recall("x")
        with pytest.raises(CheckpointBlocked, match="BLOCKED_MISSING_PREREQUISITE.*memoryd serve"):
            await rt.checkpoint([{"role": "user", "content": "x"}])
        with pytest.raises(NotDurable, match="1 turns"):  # it says so
            await rt.aclose()
        with pytest.raises(ClosedError):
            rt.sync_turn("after", "ok")
        with pytest.raises(ClosedError):
            await rt.recall("x")


async def test_status_counts_what_is_held_here(daemon: Daemon) -> None:
    with memoryd.scope(user="ada", session="s"), blocking.Client(daemon.home, "held", socket=daemon.path) as plain:
        async with client_of(daemon, "held") as rt:
            lines = (rt._line, plain._here().line)
            reach = [line._connect for line in lines]
            for line in lines:
                line._connect = unreachable  # type: ignore[method-assign]  # the turns' own connection, while calls go through
                line._drop_link()
            held = rt.sync_turn("zebra", "ok"), plain.sync_turn("lion", "ok")
            for status in (await rt.status(), plain.status()):
                assert status.log is not None and status.log.held == 1
                assert any("1 turns are held in the calling process" in note for note in status.notes)
            for line, connect_again in zip(lines, reach, strict=True):
                line._connect = connect_again  # type: ignore[method-assign]
            assert (await settled(rt, held[0])).state == "journaled" == plain.settled(held[1], 60).state
            assert rt.sync_turn("zebra", "ok").state in ("journaled", "held")


def unreachable(timeout: float) -> Any:
    raise DaemonUnavailable("not now")


async def test_what_is_held_is_bounded(own: Daemon) -> None:
    memory = blocking.Client(own.home, socket=own.path)
    own.kill()
    with memory.scope(user="ada", session="s"):
        with pytest.raises(JournalUnavailable) as caught:
            for _ in range(100):
                assert memory.sync_turn("x" * 300_000, "ok").state == "held"
        assert caught.value.reason == "held-full"
    assert len(memory._here().line.close(0.0)) > 50


async def test_a_call_that_is_too_large_is_told_here(own: Daemon) -> None:
    async with client_of(own) as rt:
        with memoryd.scope(user="ada", session="s"):
            with pytest.raises(CheckpointBlocked, match="daemon.frame_bytes"):
                await rt.checkpoint(None, source=b"x" * (17 << 20))
            assert (await settled(rt, rt.sync_turn("zebra", "ok"))).state == "journaled"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork while the client's thread may run
def test_a_forked_child_has_connections_of_its_own(daemon: Daemon) -> None:
    with blocking.Client(daemon.home, "forked", socket=daemon.path) as memory, memory.scope(user="ada", session="s"):
        memory.sync_turn("before", "ok")
        memory.list_keys()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if memory.sync_turn("child", "ok").state in ("journaled", "held"):
                    memory.flush()
                    code = 0
            finally:
                os._exit(code)
        memory.sync_turn("parent", "ok")
        memory.flush()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert memory.list_keys() == []
    assert sorted(logged(daemon.home, "forked").values()) == ["before", "child", "parent"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_trio_client_is_not_used_after_a_fork(daemon: Daemon) -> None:
    async with client_of(daemon, "forked trio") as rt:
        with memoryd.scope(user="ada", session="s"):
            await settled(rt, rt.sync_turn("before", "ok"))
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    rt.sync_turn("child", "ok")
                except ForkedError:
                    code = 0
                finally:
                    os._exit(code)
            _, status = await trio.to_thread.run_sync(os.waitpid, child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            assert (await settled(rt, rt.sync_turn("after", "ok"))).state == "journaled"
    assert list(logged(daemon.home, "forked trio").values()) == ["before", "after"]


def test_a_host_list_of_messages_travels_as_its_last_turn() -> None:
    from memoryd.client._trim import without_texts

    rows = [{"role": "user", "id": "1", "content": "old"}, {"role": "assistant", "id": "2"}, 7]
    rows += [{"role": "user", "id": "3", "content": [{"type": "image", "data": "x" * 99}, "text"]}, {"role": "assistant", "uuid": "4", "content": "y"}]
    assert without_texts(rows) == [{"role": "user", "id": "3", "content": [{"type": "image"}]}, {"role": "assistant", "uuid": "4"}]
    assert (without_texts("wrong"), without_texts(None)) == ("wrong", None)
    assert Held("sync_turn", {"user": "x" * 10}, {}, 3).size == 210


def test_the_clients_paths_are_those_of_the_settings(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_SOCKET", str(daemon.path))
    monkeypatch.setenv("MEMORYD_HOME", str(daemon.home))
    with blocking.Client() as memory:
        wait_until(lambda: memory.home == daemon.home)


def test_a_flood_waits_in_its_socket_while_the_log_is_locked(tmp_path: Path) -> None:
    """Turns that nobody acknowledges are refused by no limit of what can be held."""
    with Daemon(tmp_path, config=QUIET + "[log]\nheld_max_bytes = 262144\n") as own, own.client() as raw:
        raw.turn("first")
        other = connect(profile_directory(own.home, "default") / "log.db", Options())
        flood = b"".join(frame("sync_turn", user=f"turn {n} " + "x" * 500, assistant="", scope=SCOPE) for n in range(3000))
        sender = threading.Thread(target=raw.send, args=(flood,))
        with other.transaction("IMMEDIATE"):
            sender.start()
            time.sleep(1.0)
            assert sender.is_alive()
        other.close()
        sender.join(60)
        log = raw.call("status", scope=SCOPE)["log"]
        assert log["refused"] == 0
        wait_until(lambda: len(logged(own.home)) == 3001)
    assert [text.split()[1] for text in list(logged(own.home).values())[1:]] == [str(n) for n in range(3000)]
