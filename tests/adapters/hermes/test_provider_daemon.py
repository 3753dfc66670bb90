"""The provider through memoryd's daemon, by setting: the same store, and nothing lost or doubled where the daemon goes away."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.blocking import Memory
from memoryd_hermes import MemorydProvider
from memoryd_hermes._relay import Relayed
from tests.adapters.hermes.manager import Manager, agent, said, store_of, turns
from tests.daemon.harness import Daemon, until


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "hermes"
    (place / "memoryd").mkdir(parents=True)
    (place / "memoryd" / "config.json").write_text(json.dumps({"daemon": "auto"}))
    return place


@pytest.fixture
def daemon(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    (tmp_path / "d").mkdir()
    with Daemon(tmp_path / "d", home=store_of(home)) as found:
        monkeypatch.setenv("MEMORYD_SOCKET", str(found.path))
        yield found


def through(manager: Manager) -> type:
    with manager.provider._bound.store.memory() as memory:
        return type(memory)


def test_a_whole_life_through_the_daemon(home: Path, daemon: Daemon) -> None:
    history = said(("My cat is called Hugo", "ok"), ("missed", "ok"))
    with agent(home) as manager:
        assert through(manager) is Relayed
        manager.turn(1, "My cat is called Hugo", "ok", [])
        assert manager.flush_pending()
        assert "Hugo" in manager.recalled("what is my cat called?")
        manager.provider.on_memory_write("add", "user", "likes tea")
        assert json.loads(manager.handle_tool_call("memory_backend", {"action": "list"}))["count"] == 1
        found = json.loads(manager.handle_tool_call("memoryd_search", {"query": "cat Hugo"}))
        assert found["count"] == 1 and found["results"][0]["at"].startswith("20")
        assert json.loads(manager.handle_tool_call("memoryd_remember", {"key": "city", "value": "Turin"}))["success"]
        _, text = manager.compact(history, required=True)
        assert "4 messages archived" in text
        checkpoint = text.split()[2].rstrip(":")
        read = json.loads(manager.handle_tool_call("memoryd_checkpoint_read", {"id": checkpoint}))
        assert [row["text"] for row in read["messages"]] == [row["content"] for row in history]
    daemon.check()
    daemon.stop()
    assert turns(home) == [("My cat is called Hugo", "ok"), ("missed", "ok")]


def test_where_the_daemon_dies_the_store_is_opened_here(home: Path, daemon: Daemon) -> None:
    with agent(home) as manager:
        for number in range(3):
            manager.sync_all(f"turn {number}", "ok")
        assert manager.flush_pending(60)
        daemon.kill()
        for number in range(3, 6):
            manager.sync_all(f"turn {number}", "ok")
        assert manager.flush_pending(60)
        _, text = manager.compact(said(*((f"turn {number}", "ok") for number in range(7))), required=True)
        assert "14 messages archived" in text
        assert through(manager) is Memory
    assert sorted(turns(home)) == [(f"turn {number}", "ok") for number in range(7)]


def test_what_a_daemon_that_stood_still_has_after_all_is_not_told_twice(home: Path, daemon: Daemon) -> None:
    """It said nothing for longer than a turn waits, and the turn was in its socket."""
    with agent(home) as manager:
        manager.sync_all("turn 0", "ok")
        assert manager.flush_pending(60)
        daemon.signal(signal.SIGSTOP)
        for number in (1, 2):
            manager.sync_all(f"turn {number}", "ok")
        until(lambda: manager.provider.status()["counts"].get("refused", 0) > 0)
        daemon.signal(signal.SIGCONT)
        daemon.check()
        manager.sync_all("turn 3", "ok")
        assert manager.flush_pending(60)
    assert turns(home) == [(f"turn {number}", "ok") for number in range(4)]


def test_without_a_daemon_the_store_is_opened_here(home: Path) -> None:
    with agent(home, provider=MemorydProvider()) as manager:
        assert through(manager) is Memory
        manager.turn(1, "My cat is called Hugo", "ok", [])
    assert turns(home) == [("My cat is called Hugo", "ok")]
