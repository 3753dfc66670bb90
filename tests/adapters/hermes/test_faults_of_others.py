"""What other memory providers of Hermes were seen to do wrong, each as one test that this one does not: lost turns, doubled turns, mixed
people, blocked turns, stale facts."""

from __future__ import annotations

import inspect
import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memoryd.blocking import Memory
from memoryd.core import scope
from memoryd.testing.honcho import Fault, HonchoServer
from memoryd_hermes import MemorydProvider
from memoryd_hermes._settings import read_settings, settings_path
from tests.adapters.hermes.manager import agent, events, said, store_of, turns


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def configure(home: Path, **values: Any) -> None:
    settings_path(home).parent.mkdir(parents=True, exist_ok=True)
    settings_path(home).write_text(json.dumps(values))


@contextmanager
def honcho_for(home: Path, *faults: Fault) -> Iterator[HonchoServer]:
    with HonchoServer() as server:
        server.faults.extend(faults)
        configure(home, backend="honcho", honcho_url=server.url)
        (home / "memoryd-store").mkdir()
        (home / "memoryd-store" / "memoryd.toml").write_text("[backends.honcho]\nsettle = 0.05\ntimeout = 5.0\n[delivery]\nbackoff_min = 0.05\n")
        yield server


def delivered(home: Path, server: HonchoServer) -> list[str]:
    """What the server has of the user, once everything of the store is delivered."""
    with agent(home, "later") as manager, manager.provider._bound.store.memory() as memory:
        assert memory.drain(120).remote
    return [message["content"] for message in server.messages()]


# -- lost -----------------------------------------------------------------------------------------------------------------------


def test_the_first_turns_while_the_server_is_slow_are_not_dropped(home: Path) -> None:
    with honcho_for(home) as server:
        server.stop()
        with agent(home) as manager:
            for number in range(3):
                manager.turn(number, f"turn {number}", "ok", [])
        assert turns(home) == [(f"turn {number}", "ok") for number in range(3)]
        server.start()
        assert [text for text in delivered(home, server) if text.startswith("turn")] == ["turn 0", "turn 1", "turn 2"]


def test_a_failed_delivery_is_no_debug_line_but_a_backlog_that_status_shows(home: Path) -> None:
    with honcho_for(home) as server:
        server.stop()
        with agent(home) as manager:
            manager.turn(1, "My cat is called Hugo", "ok", [])
            assert manager.flush_pending()
            with manager.provider._bound.store.memory() as memory:
                backlog = {one.name: one.backlog for one in memory.status().backends}
            assert backlog["honcho"] >= 1
        server.start()
        assert "My cat is called Hugo" in delivered(home, server)


def test_a_turn_is_on_disk_when_its_call_returns_not_in_a_cache(home: Path) -> None:
    provider = MemorydProvider()
    provider.initialize("s1", hermes_home=str(home))
    provider.sync_turn("My cat is called Hugo", "ok", session_id="s1")
    assert turns(home) == [("My cat is called Hugo", "ok")]  # no shutdown, no flush
    provider.shutdown()


def test_a_mirrored_memory_is_kept_when_its_call_returns_and_of_every_kind(home: Path) -> None:
    before = threading.active_count()
    provider = MemorydProvider()
    provider.initialize("s1", hermes_home=str(home))
    started = threading.active_count()
    for action, target, text in (("add", "user", "likes tea"), ("add", "memory", "uses make"), ("replace", "memory", "uses just")):
        provider.on_memory_write(action, target, text, {"previous_content": "uses make"})
    assert threading.active_count() <= max(before, started)
    kept = [(event["type"], event["value"]) for event in events(store_of(home)) if event["kind"] == "memory"]
    assert kept == [("user", "likes tea"), ("memory", "uses make"), ("memory", "uses just")]
    provider.shutdown()


def test_transcripts_are_kept_whole_without_a_tool_call_or_an_extraction(home: Path) -> None:
    long = "the harbour " * 5000
    with agent(home) as manager:
        manager.turn(1, long, long, [])
    assert turns(home) == [(long, long)]


def test_a_refused_turn_is_not_swallowed(home: Path) -> None:
    store_of(home).write_text("in the way")
    with agent(home) as manager:
        manager.turn(1, "My cat is called Hugo", "ok", [])
        assert manager.flush_pending()
        assert manager.provider.status()["counts"]["refused"] == 1 and manager.provider.status()["problem"]
        store_of(home).unlink()
    assert turns(home) == [("My cat is called Hugo", "ok")]


# -- once and in order ------------------------------------------------------------------------------------------------------------


def test_a_timeout_after_the_server_had_it_sends_nothing_twice(home: Path) -> None:
    with honcho_for(home, Fault("reset", on="add_messages")) as server:
        with agent(home) as manager:
            for number in range(3):
                manager.turn(number, f"turn {number}", "ok", [])
        assert sorted(text for text in delivered(home, server) if text.startswith("turn")) == ["turn 0", "turn 1", "turn 2"]


def test_turns_boundaries_and_the_end_do_not_interleave_into_copies(home: Path) -> None:
    told = [(f"turn {number}", "ok") for number in range(20)]
    with agent(home) as manager:
        threads = [threading.Thread(target=manager.on_session_end, args=(said(*told),)) for _ in range(3)]
        for number, (user, answer) in enumerate(told):
            manager.sync_all(user, answer)
            if number in (5, 10, 15):
                threads[number // 5 - 1].start()
        for thread in threads:
            thread.join()
    assert sorted(turns(home)) == sorted(told)


def test_one_worker_s_turns_stay_in_order(home: Path) -> None:
    with agent(home) as manager:
        for number in range(50):
            manager.sync_all(f"turn {number}", "ok")
    assert turns(home) == [(f"turn {number}", "ok") for number in range(50)]


# -- blocking ---------------------------------------------------------------------------------------------------------------------


def test_no_hook_waits_for_a_server_that_hangs(home: Path) -> None:
    """Not initialize, not the end of a session (which comes at every compaction), not a tool, not shutdown."""
    with honcho_for(home, Fault("hang", times=200)) as server:
        began = time.monotonic()
        with agent(home) as manager:
            history: list[dict[str, Any]] = []
            manager.turn(1, "My cat is called Hugo", "ok", history)
            manager.provider.on_memory_write("add", "user", "likes tea")
            assert json.loads(manager.handle_tool_call("memoryd_remember", {"key": "city", "value": "Turin"}))["success"]
            history, text = manager.compact(history, required=True)
            manager.on_session_end(history)
            assert "archived" in text
        assert time.monotonic() - began < 30  # each of them hung for as long as the server did
        server.release()
    assert turns(home) == [("My cat is called Hugo", "ok")]


def test_a_long_memory_does_not_make_a_write_longer(home: Path) -> None:
    """Nothing is rebuilt for a new fact: what a write adds to the files does not grow with what is there."""

    def log_bytes() -> int:
        return sum(path.stat().st_size for path in store_of(home).rglob("log.db*"))

    with agent(home) as manager:
        for number in range(400):
            manager.provider.sync_turn(f"fact {number} about the harbour", "ok", session_id="s1")
        first = log_bytes()
        for number in range(400, 800):
            manager.provider.sync_turn(f"fact {number} about the harbour", "ok", session_id="s1")
        second = log_bytes() - first
    assert second < 3 * max(first, 1)


def test_recall_does_not_wait_behind_writes(home: Path) -> None:
    """One lock for everything would make recall give up while facts come in."""
    with agent(home) as manager, ThreadPoolExecutor(4) as pool:
        manager.sync_all("My cat is called Hugo", "ok")
        assert manager.flush_pending()
        writes = [pool.submit(manager.provider.sync_turn, f"noise {number}", "ok") for number in range(400)]
        assert "Hugo" in manager.recalled("what is my cat called?")
        for write in writes:
            write.result()
    assert len(turns(home)) == 401


def test_every_write_is_one_transaction(home: Path) -> None:
    """A killed process leaves no fact without its index: what the log has is found after the next open, whatever was projected."""
    provider = MemorydProvider()
    provider.initialize("s1", hermes_home=str(home))
    provider.sync_turn("My cat is called Hugo", "ok", session_id="s1")
    provider.shutdown()
    for path in store_of(home).rglob("memory.db*"):
        path.unlink()
    with agent(home, "s2") as manager:
        assert "Hugo" in manager.recalled("what is my cat called?")


# -- whose ------------------------------------------------------------------------------------------------------------------------


def test_settings_come_from_the_home_that_initialize_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, other = home / "a", home / "b"
    configure(ours, user="ada")
    configure(other, user="bob")
    monkeypatch.setenv("HERMES_HOME", str(other))
    with agent(ours) as manager:
        manager.turn(1, "My cat is called Hugo", "ok", [])
    assert turns(ours, "ada") == [("My cat is called Hugo", "ok")]


def test_nothing_falls_back_to_the_user_s_own_home(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    user_home = tmp_path_factory.mktemp("user")
    (user_home / ".honcho").mkdir()
    (user_home / ".honcho" / "config.json").write_text('{"apiKey": "of-the-user", "baseUrl": "http://127.0.0.1:9"}')
    monkeypatch.setenv("HOME", str(user_home))
    with agent(home) as manager:
        manager.turn(1, "My cat is called Hugo", "ok", [])
    assert sorted(path.name for path in user_home.iterdir()) == [".honcho"]
    assert turns(home) == [("My cat is called Hugo", "ok")]


def test_two_homes_in_one_process_have_two_stores_whoever_was_first(home: Path) -> None:
    places = [home / name for name in "ab"]
    managers = []
    for place in places:
        place.mkdir()
        managers.append(agent(place, "same-session"))
    with managers[0] as one, managers[1] as two:
        for number in range(10):
            one.sync_all(f"a {number}", "ok")
            two.sync_all(f"b {number}", "ok")
    for place, name in zip(places, "ab", strict=True):
        assert [user for user, _ in turns(place)] == [f"{name} {number}" for number in range(10)]


def test_two_directories_of_one_name_are_two(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for parent in "xy":
        (home / parent / "app").mkdir(parents=True)
        monkeypatch.chdir(home / parent / "app")
        with agent(home, f"s-{parent}", cwd=os.getcwd()) as manager:
            manager.turn(1, f"from {parent}", "ok", [])
    found = {(event["scope"]["session"], event["scope"]["workspace"]) for event in events(store_of(home)) if event["kind"] == "turn"}
    assert found == {("s-x", str(home / "x" / "app")), ("s-y", str(home / "y" / "app"))}


def test_a_worker_without_context_writes_into_its_own_profile(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = home / "default-profile"
    monkeypatch.setenv("HERMES_HOME", str(elsewhere))
    place = home / "profile"
    place.mkdir()
    with agent(place, contexts=False) as manager:
        manager.turn(1, "My cat is called Hugo", "ok", [])
        manager.provider.on_memory_write("add", "user", "likes tea")
    assert len(turns(place)) == 1 and not elsewhere.exists()


# -- sessions, compaction, staleness ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["resume", "branch", "new_session"])
def test_after_a_switch_turns_are_of_the_new_session(home: Path, reason: str) -> None:
    with agent(home, "s1") as manager:
        manager.sync_all("one", "ok")
        assert manager.flush_pending()
        manager.on_session_switch("s2", parent_session_id="s1", reset=reason == "new_session", reason=reason)
        manager.sync_all("two", "ok")
    assert [event["scope"]["session"] for event in events(store_of(home)) if event["kind"] == "turn"] == ["s1", "s2"]


def test_a_compaction_is_protected(home: Path) -> None:
    with agent(home) as manager:
        manager.compact(said(("My cat is called Hugo", "ok")), required=True)
    with Memory(store_of(home)) as memory, scope(user="default"):
        assert [info.count for info in memory.checkpoints()] == [2]


def test_a_replaced_or_removed_fact_is_not_recalled_as_current(home: Path) -> None:
    with agent(home) as manager:
        write = manager.provider.on_memory_write
        write("add", "user", "the deploy host is heron")
        write("add", "user", "the backup host is egret")
        write("replace", "user", "the deploy host is kestrel", {"previous_content": "the deploy host is heron"})
        write("remove", "user", "", {"previous_content": "the backup host is egret"})
        found = json.loads(manager.handle_tool_call("memoryd_search", {"query": "host heron egret kestrel"}))
    current = [one["text"] for one in found["results"] if not one.get("superseded")]
    assert any("kestrel" in text for text in current)
    assert not any("heron" in text or "egret" in text for text in current)


@pytest.mark.parametrize("value", ["false", "False", "no", "0", "off", False])
def test_a_setting_that_says_false_is_false(home: Path, value: Any) -> None:
    configure(home, auto_recall=value, tools=value)
    assert (read_settings(home).auto_recall, read_settings(home).tools) == (False, False)


def test_saving_the_settings_touches_no_other_file_and_keeps_what_it_does_not_know(home: Path) -> None:
    (home / "config.yaml").write_text("# my notes\nmemory:\n  provider: memoryd  # chosen\n")
    before = (home / "config.yaml").read_bytes()
    configure(home, mine="kept", backend="local")
    MemorydProvider().save_config({"private": "false", "recall_chars": "900"}, str(home))
    assert (home / "config.yaml").read_bytes() == before
    assert json.loads(settings_path(home).read_text())["mine"] == "kept"
    assert (read_settings(home).private, read_settings(home).recall_chars) == (False, 900)
    assert sorted(path.name for path in settings_path(home).parent.iterdir()) == ["config.json"]


def test_every_hook_takes_what_newer_hosts_give() -> None:
    accepted = {name: inspect.signature(getattr(MemorydProvider, name)).parameters for name in dir(MemorydProvider) if name in HOOKS}
    assert set(accepted) == set(HOOKS)
    for name, expected in HOOKS.items():
        assert set(expected) <= set(accepted[name]), name
        assert name in FIXED or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in accepted[name].values()), name


FIXED = ("on_session_end",)
HOOKS = {
    "initialize": ("session_id",),
    "prefetch": ("query", "session_id"),
    "queue_prefetch": ("query", "session_id"),
    "sync_turn": ("user_content", "assistant_content", "session_id", "messages", "turn_author"),
    "on_turn_start": ("turn_number", "message"),
    "on_session_end": ("messages",),
    "on_session_switch": ("new_session_id", "parent_session_id", "reset", "rewound"),
    "on_pre_compress": ("messages", "require_checkpoint"),
    "on_delegation": ("task", "result", "child_session_id"),
    "on_memory_write": ("action", "target", "content", "metadata"),
    "handle_tool_call": ("tool_name", "args"),
}
