"""Which backend is primary: by name, by ``auto``, by nobody's choice; and what a failing one does to a reader."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import memoryd
from memoryd.core import Availability, Status
from memoryd.errors import BackendUnavailable, ConfigError
from memoryd.settings import load_config
from memoryd.testing import FakeRemote, RemoteFault, registered

QUIET = {"logging": {"level": "off"}}


@pytest.fixture
def autojump_clock() -> MockClock:
    return MockClock(autojump_threshold=0.05)


class Unconfigured(FakeRemote):
    def is_available(self) -> Availability:
        return Availability(False, "set its address")


@contextmanager
def cloud(remote: FakeRemote) -> Iterator[None]:
    """``remote`` is what the name honcho means."""
    with registered("honcho", lambda context: remote):
        yield


@asynccontextmanager
async def opened(home: Path, **config: Any) -> AsyncIterator[memoryd.Runtime]:
    with memoryd.scope(user="ada", session="s1"):
        async with memoryd.open_runtime(home, config={**QUIET, **config}) as rt:
            yield rt


def roles(status: Status) -> dict[str, str]:
    return {backend.name: backend.role for backend in status.backends}


# -- auto --------------------------------------------------------------------------------------------------------------------


async def test_auto_takes_the_healthy_one(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote("honcho")
    with cloud(remote):
        async with opened(tmp_path, backend="auto") as rt:
            assert roles(await rt.status()) == {"honcho": "primary", "local": "history"}
            rt.sync_turn("hello there", "hi")
            await rt.drain(30)
            assert (await rt.recall("hello")).source == "honcho"
    assert [turn.user for turn in remote.turns] == ["hello there"]


@pytest.mark.parametrize("fault", ["transient", "permanent", "lost", "hang"])
async def test_auto_takes_local_where_the_other_is_ill(tmp_path: Path, autojump_clock: MockClock, fault: Any) -> None:
    remote = FakeRemote("honcho", outage=RemoteFault(fault))
    with cloud(remote):
        async with opened(tmp_path, backend="auto") as rt:
            status = await rt.status()
            assert roles(status) == {"local": "primary"}
            assert any("auto: local is the primary: honcho" in note for note in status.notes)
            remote.outage = None
            rt.sync_turn("hello there", "hi")
            await rt.drain(30)
            assert (await rt.recall("hello")).source == "local"
        assert remote.received == []
        async with opened(tmp_path, backend="auto") as rt:  # it is well now: it also gets what came in meanwhile
            await rt.drain(30)
    assert [turn.user for turn in remote.turns] == ["hello there"]


async def test_auto_takes_local_where_the_other_is_not_configured(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = Unconfigured("honcho")
    with cloud(remote):
        async with opened(tmp_path, backend="auto") as rt:
            status = await rt.status()
    assert roles(status) == {"local": "primary"}
    assert any("set its address" in note for note in status.notes)
    assert remote.opens == 0


async def test_an_ill_one_that_is_also_a_mirror_stays_one(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote("honcho", outage=RemoteFault("transient"))
    with cloud(remote):
        async with opened(tmp_path, backend="auto", mirrors=["honcho", "local"]) as rt:
            assert roles(await rt.status()) == {"honcho": "mirror", "local": "primary"}
            rt.sync_turn("hello there", "hi")
            remote.outage = None
            await rt.drain(300)
    assert [turn.user for turn in remote.turns] == ["hello there"]


async def test_a_key_by_itself_chooses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock) -> None:
    monkeypatch.setenv("HONCHO_API_KEY", "secret")
    monkeypatch.setenv("HONCHO_URL", "http://127.0.0.1:9")
    built: list[str] = []

    def create(context: Any) -> FakeRemote:
        built.append(context.name)
        return FakeRemote("honcho")

    with registered("honcho", create):
        async with opened(tmp_path) as rt:
            rt.sync_turn("hello", "hi")
            assert roles(await rt.status()) == {"local": "primary"}
    assert built == []


# -- by name -----------------------------------------------------------------------------------------------------------------


async def test_one_primary_and_several_mirrors(tmp_path: Path, autojump_clock: MockClock) -> None:
    remotes = {name: FakeRemote(name) for name in ("a", "b", "c")}
    with ExitStack() as stack:
        for name, remote in remotes.items():
            stack.enter_context(registered(name, lambda context, remote=remote: remote))
        async with opened(tmp_path, backend="a", mirrors=["b", "c"]) as rt:
            assert roles(await rt.status()) == {"a": "primary", "b": "mirror", "c": "mirror", "local": "history"}
            rt.sync_turn("hello", "hi")
            await rt.drain(30)
    assert [len(remote.turns) for remote in remotes.values()] == [1, 1, 1]


async def test_a_plugin_of_the_users_is_chosen_by_its_name(private_home: Path, autojump_clock: MockClock) -> None:
    (private_home / "plugins").mkdir(parents=True)
    plugin = "from memoryd.testing import FakeRemote\ndef create(context):\n    return FakeRemote('mine')\n"
    (private_home / "plugins/mine.py").write_text(plugin, "utf-8")
    async with opened(private_home, backend="mine") as rt:
        rt.sync_turn("hello", "hi")
        await rt.drain(30)
        assert (await rt.recall("hello")).source == "mine"


async def test_a_named_one_that_is_not_configured_is_an_error(tmp_path: Path) -> None:
    with cloud(Unconfigured("honcho")), pytest.raises(BackendUnavailable, match='backend: "honcho" is not available: set its address'):
        async with opened(tmp_path, backend="honcho"):
            pass
    assert issubclass(BackendUnavailable, ConfigError)


async def test_a_failing_primary_falls_back_to_local_and_says_so(tmp_path: Path, autojump_clock: MockClock) -> None:
    remote = FakeRemote("honcho")
    with cloud(remote):
        async with opened(tmp_path, backend="honcho") as rt:
            rt.sync_turn("hello there", "hi")
            await rt.drain(30)
            healthy = await rt.recall("hello")
            assert (healthy.source, healthy.stale) == ("honcho", False)
            for fault in (RemoteFault("transient"), RemoteFault("hang")):
                remote.outage = fault
                answer = await rt.recall("hello")
                assert [hit.text for hit in answer] == ["hello there"]
                assert (answer.source, answer.stale) == ("local", True)
                (shown,) = [backend for backend in (await rt.status()).backends if backend.name == "honcho"]
                assert shown.last_error
            remote.outage = None
            rt.sync_turn("and now", "hi")
            await rt.drain(300)
            assert (await rt.recall("now")).source == "honcho"


async def test_what_was_valid_then_is_asked_of_local(tmp_path: Path, autojump_clock: MockClock) -> None:
    with cloud(FakeRemote("honcho")):
        async with opened(tmp_path, backend="honcho") as rt:
            rt.sync_turn("hello there", "hi", created_at=1_700_000_000)
            rt.sync_turn("hello again", "hi")
            await rt.drain(30)
            then = await rt.recall("hello", as_of=1_700_000_001)
            assert ([hit.text for hit in then], then.source, then.stale) == (["hello there"], "local", False)


# -- a second primary --------------------------------------------------------------------------------------------------------


async def test_a_second_primary_is_refused_and_both_are_named(tmp_path: Path) -> None:
    async with opened(tmp_path, backend=["local", "honcho"]) as rt:
        status = await rt.status()
    assert roles(status) == {"local": "primary"}
    (note,) = [note for note in status.notes if "refused" in note]
    assert '"honcho"' in note
    assert '"local"' in note


@pytest.mark.parametrize(
    ("environ", "primary", "refused"),
    [
        ({"MEMORYD_BACKEND": "local", "HERMES_MEMORY_BACKEND": "honcho"}, "local", ("honcho",)),
        ({"MEMORYD_BACKEND": "Local", "HERMES_MEMORY_BACKEND": " local "}, "local", ()),
        ({"MEMORYD_BACKEND": "", "HERMES_MEMORY_BACKEND": "null"}, "null", ()),
        ({"MEMORYD_BACKEND": "honcho, local,honcho"}, "honcho", ("local",)),
        ({"HERMES_MEMORY_BACKEND": "auto"}, "auto", ()),
        ({}, "local", ()),
    ],
)
def test_two_variables_that_disagree(tmp_path: Path, environ: dict[str, str], primary: str, refused: tuple[str, ...]) -> None:
    config = load_config(tmp_path, environ={"HOME": str(tmp_path), **environ}).config
    assert (config.backend, config.refused, len(config.warnings)) == (primary, refused, len(refused))


def test_a_later_source_has_the_whole_say(tmp_path: Path) -> None:
    (tmp_path / "memoryd.toml").write_text('backend = ["local", "null"]', "utf-8")
    environ = {"HOME": str(tmp_path)}
    assert load_config(tmp_path, environ=environ).config.refused == ("null",)
    assert load_config(tmp_path, environ={**environ, "MEMORYD_BACKEND": "null"}).config.refused == ()
    with pytest.raises(ConfigError, match="backend: expected the name of a backend, got a list"):
        load_config(tmp_path, overrides={"backend": [1]})


async def test_a_null_primary_sends_to_nobody(tmp_path: Path) -> None:
    async with opened(tmp_path, backend="null") as rt:
        assert rt.sync_turn("hello", "hi").state == "off"
        with trio.fail_after(10):
            assert list(await rt.recall("hello")) == []
