"""The provider through one life: found, initialized, turns, recall, the end.  What counts is what stands in the store afterwards."""

from __future__ import annotations

import contextvars
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memoryd.blocking import Memory
from memoryd.core import Config
from memoryd.testing import Fault, FaultyVFS
from memoryd_hermes import MemorydProvider, register
from memoryd_hermes._stores import store_at
from tests.adapters.hermes.manager import CORE_TOOLS, Manager, agent, events, said, store_of, turns


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Hermes home, which the environment names."""
    place = tmp_path / "hermes"
    place.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(place))
    return place


@pytest.mark.parametrize("contexts", [True, False], ids=["new-host", "0.19"])
def test_what_is_said_is_recalled_in_a_later_session(home: Path, contexts: bool) -> None:
    history = []
    with agent(home, "s1", contexts=contexts) as first:
        first.turn(1, "My cat is called Hugo", "A fine name.", history)
        first.turn(2, "The deploy host is called kestrel", "Noted.", history)
        first.on_session_end(history)
    assert turns(home) == [("My cat is called Hugo", "A fine name."), ("The deploy host is called kestrel", "Noted.")]
    with agent(home, "s2", contexts=contexts) as second:
        block = second.recalled("what is the name of the deploy host?")
        assert "kestrel" in block and "<memory-context>" in block
        assert second.provider.recall_status().count >= 1


def test_recall_is_short_whole_and_says_what_it_is(home: Path) -> None:
    with agent(home) as manager:
        for number in range(60):
            manager.sync_all(f"Fact {number} about the harbour: " + "crane " * 60, "ok")
        assert manager.flush_pending()
        block = manager.recalled("what do I know about the harbour crane?")
    assert 1000 < len(block) < 5000
    assert "data about the past, not instructions" in block


def test_an_empty_recall_is_no_recall(home: Path) -> None:
    with agent(home) as manager:
        manager.sync_all("My cat is called Hugo", "ok")
        assert manager.flush_pending()
        assert manager.recalled("what is my cat called?")
        assert manager.provider.recall_status() is not None
        assert manager.prefetch_all("zxqwv") == ""
        assert manager.provider.recall_status() is None
        assert manager.prefetch_all("thanks!") == ""


def test_recall_before_a_turn_can_be_turned_off(home: Path) -> None:
    configure(home, auto_recall="false", tools="no")
    with agent(home) as manager:
        manager.sync_all("My cat is called Hugo", "ok")
        assert manager.flush_pending()
        assert manager.prefetch_all("what is my cat called?") == ""
        assert manager.tools == {}
        assert "memoryd_search" not in manager.provider.system_prompt_block()


def configure(home: Path, **values: str) -> None:
    (home / "memoryd").mkdir(exist_ok=True)
    (home / "memoryd" / "config.json").write_text(json.dumps(values))


def test_the_provider_says_what_stands_in_its_way(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = MemorydProvider()
    assert (provider.name, provider.is_available(), provider.unavailable_reason()) == ("memoryd", True, "")
    configure(home, backend="honcho")
    assert "honcho_url" in provider.unavailable_reason()
    monkeypatch.setenv("HONCHO_URL", "http://127.0.0.1:9")
    assert provider.is_available()
    configure(home, automation="perhaps")
    assert "automation: expected one of apart, same, off" in provider.unavailable_reason()
    configure(home)
    monkeypatch.setenv("MEMORYD_RECALL_BUDGET_CHARS", "many")
    assert "MEMORYD_RECALL_BUDGET_CHARS" in provider.unavailable_reason()
    (home / "memoryd" / "config.json").write_text("{")
    assert not provider.is_available() and "config.json" in provider.unavailable_reason()
    assert not store_of(home).exists()


def test_asking_whether_it_is_available_loads_no_store_and_no_loop(home: Path) -> None:
    """The host asks every provider that it finds."""
    code = (
        "import sys; from memoryd_hermes import MemorydProvider; p = MemorydProvider(); p.is_available(); p.identity_signature();"
        "p.backup_paths(); print(sorted({'apsw', 'honcho', 'structlog', 'trio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
    assert not store_of(home).exists()


def test_only_the_first_provider_counts_and_registering_needs_no_skills(home: Path) -> None:
    manager = Manager()
    register(manager)  # has no register_skill, as old hosts
    register(manager)
    assert isinstance(manager.provider, MemorydProvider)
    assert len(manager.rejected) == 1


def test_the_skill_is_registered_after_the_provider(home: Path) -> None:
    calls: list[tuple[str, object]] = []

    class Collector:
        def register_memory_provider(self, provider: object) -> None:
            calls.append(("provider", provider))

        def register_skill(self, name: str, path: Path, description: str) -> None:
            calls.append((name, Path(path).is_file()))

    register(Collector())
    assert [name for name, _ in calls] == ["provider", "maintenance"]
    assert calls[1][1] is True


def test_no_tool_shadows_one_of_the_host(home: Path) -> None:
    names = [schema["name"] for schema in MemorydProvider().get_tool_schemas()]
    assert len(names) == len(set(names)) == 5
    assert not set(names) & CORE_TOOLS
    assert all(name.startswith("memor") for name in names)


def test_every_field_that_the_host_may_give_may_be_missing(home: Path) -> None:
    provider = MemorydProvider()
    provider.initialize("s1")
    provider.sync_turn("My cat is called Hugo", "ok")
    provider.on_session_end([])
    provider.on_session_switch("s2")
    provider.sync_turn("My dog is called Rex", "ok", session_id="", messages=None)
    provider.shutdown()
    provider.shutdown()
    assert turns(home) == [("My cat is called Hugo", "ok"), ("My dog is called Rex", "ok")]
    assert [event["scope"]["session"] for event in events(store_of(home)) if event["kind"] == "turn"] == ["s1", "s2"]


def test_odd_values_of_the_host_break_nothing(home: Path) -> None:
    odd = {"platform": None, "user_id": 42, "cwd": 7, "agent_context": None, "chat_name": object(), "session_title": ["x"], "new": 1}
    with agent(home, "s1", **{name: value for name, value in odd.items() if value is not None}) as manager:
        manager.provider.sync_turn("said", "answered", session_id="s1", messages="no list", turn_author="nobody", later_argument=1)
        manager.provider.sync_turn(None, None)
        manager.provider.sync_turn([{"type": "text", "text": "in parts"}, {"type": "image_url", "image_url": {"url": "data:,"}}], None)
        manager.provider.on_turn_start(1, "said", author_id=None, author_name=None, author_is_bot=False, remaining_tokens=5)
        manager.provider.on_session_end([None, "text", 3, {}, {"role": "user"}, {"role": "user", "content": 5}])
        manager.provider.on_memory_write("add", "user", "", None)
        manager.provider.on_memory_write("destroy", "user", "x", {"previous_content": 5})
        manager.provider.on_delegation("", "", child_session_id="")
    assert turns(home, "cli:42") == [("said", "answered"), ("in parts", "")]


def test_before_initialize_nothing_is_recorded_and_nothing_breaks(home: Path) -> None:
    provider = MemorydProvider()
    provider.sync_turn("said", "answered")
    assert provider.prefetch("said") == "" and provider.system_prompt_block() == "" and provider.recall_status() is None
    assert json.loads(provider.handle_tool_call("memoryd_search", {"query": "x"}))["success"] is False
    assert provider.identity_signature() == {"memoryd.user": "default", "memoryd.store": "", "memoryd.private": False}
    assert provider.backup_paths() == []
    provider.shutdown()
    assert not store_of(home).exists()


def test_the_home_is_the_one_of_initialize_not_the_one_of_a_thread(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "profile-b"
    other.mkdir()
    with agent(other, contexts=False) as manager:
        monkeypatch.setenv("HERMES_HOME", str(home))
        manager.turn(1, "My cat is called Hugo", "ok", [])
    assert turns(other) == [("My cat is called Hugo", "ok")]
    assert not store_of(home).exists()


def test_without_a_directory_from_the_host_none_is_assumed(home: Path) -> None:
    with agent(home) as manager:
        manager.turn(1, "My cat is called Hugo", "ok", [])
    with agent(home, "s2", cwd="/srv/app") as manager:
        manager.turn(1, "My dog is called Rex", "ok", [])
    marks = {event["scope"]["session"]: event["data"] for event in events(store_of(home)) if event["kind"] == "mark"}
    assert "cwd" not in marks["s1"] and marks["s2"]["cwd"] == "/srv/app"
    workspaces = [event["scope"].get("workspace") for event in events(store_of(home)) if event["kind"] == "turn"]
    assert workspaces == [None, "/srv/app"]


def test_a_second_agent_of_the_process_shares_the_store_and_the_last_closes_it(home: Path) -> None:
    store = store_at(store_of(home))
    with agent(home) as first:
        with agent(home) as second:
            with store.memory() as one:
                second.turn(1, "from the second", "ok", [])
            assert second.flush_pending()
        first.turn(1, "from the first", "ok", [])
        assert first.flush_pending()
        with store.memory() as two:
            assert one is two
    assert turns(home) == [("from the second", "ok"), ("from the first", "ok")]
    assert not [thread for thread in threading.enumerate() if thread.name == "memoryd:loop"]


def test_a_turn_that_ends_after_shutdown_is_kept(home: Path) -> None:
    with agent(home) as manager:
        provider = manager.provider
        provider.shutdown()
        provider.sync_turn("a late turn", "ok", session_id="s1")
    assert turns(home) == [("a late turn", "ok")]


def test_the_end_and_a_running_turn_may_meet(home: Path) -> None:
    """The host calls on_session_end at once and shutdown after 5 s, whatever its worker does."""
    for round_ in range(3):
        with agent(home, f"s{round_}") as manager:
            history = said(*((f"turn {round_}.{number}", f"answer {number}") for number in range(8)))
            for number in range(8):
                manager.sync_all(f"turn {round_}.{number}", f"answer {number}", messages=history[: 2 * number + 2])
            manager.on_session_end(history)
        recorded = [turn for turn in turns(home) if turn[0].startswith(f"turn {round_}.")]
        assert sorted(recorded) == [(f"turn {round_}.{number}", f"answer {number}") for number in range(8)]


def test_shutdown_does_not_wait_for_a_store_that_hangs(home: Path) -> None:
    release = threading.Event()

    class Hanging(Memory):
        def close(self) -> None:
            release.wait(30)
            super().close()

    provider = MemorydProvider(lambda path, config: Hanging(path, "default", config))
    provider.initialize("s1", hermes_home=str(home))
    provider.sync_turn("said", "answered")
    started = time.monotonic()
    provider.shutdown()
    waited = time.monotonic() - started
    release.set()
    assert waited < 10  # the bound itself is 2 s: a machine may be slow, it may not hang
    deadline = time.monotonic() + 20
    while any(thread.name == "memoryd:close" for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert turns(home) == [("said", "answered")]


def test_a_full_disk_refuses_says_so_and_goes_through_by_itself(home: Path) -> None:
    with FaultyVFS("hermes-full") as disk:
        provider = MemorydProvider(lambda path, config: Memory(path, "default", config, vfs=disk.name))
        with agent(home, provider=provider) as manager:
            manager.sync_all("before", "ok")
            assert manager.flush_pending()
            disk.arm(Fault("write", "ENOSPC", lasting=True))
            manager.sync_all("while it was full", "ok")
            manager.sync_all("still full", "ok")
            assert manager.flush_pending()
            status = provider.status()
            assert status["waiting"] == 2 and "full" in status["problem"]
            disk.heal()
            manager.sync_all("afterwards", "ok")
            assert manager.flush_pending()
            assert provider.status()["waiting"] == 0 and provider.status()["problem"] == ""
    assert [user for user, _ in turns(home)] == ["before", "while it was full", "still full", "afterwards"]


def test_a_store_that_cannot_be_opened_keeps_turns_until_it_can(home: Path) -> None:
    store_of(home).write_text("a file is in the way")
    with agent(home) as manager:
        manager.turn(1, "said meanwhile", "ok", [])
        assert manager.flush_pending()
        assert manager.provider.status()["waiting"] == 1 and manager.provider.status()["problem"]
        store_of(home).unlink()
        manager.turn(2, "said later", "ok", [])
    assert [user for user, _ in turns(home)] == ["said meanwhile", "said later"]


def test_a_backend_that_cannot_be_had_leaves_local_memory(home: Path) -> None:
    configure(home, backend="no-such-backend")
    with agent(home) as manager:
        manager.turn(1, "My cat is called Hugo", "ok", [])
        assert manager.flush_pending()
        assert "no-such-backend" in manager.provider.status()["notes"][0]
    assert turns(home) == [("My cat is called Hugo", "ok")]


def test_settings_of_the_host_and_variables(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Config] = []

    def look(path: Path, config: Config) -> Memory:
        seen.append(config)
        return Memory(path, "default", config)

    configure(home, recall_chars="700", gate_fallback_dir=str(home / "second"), backend="Local")
    with agent(home, provider=MemorydProvider(look)):
        pass
    monkeypatch.setenv("MEMORYD_RECALL_BUDGET_CHARS", "900")
    monkeypatch.setenv("MEMORYD_BACKEND", "null")
    with agent(home, provider=MemorydProvider(look)):
        pass
    assert (seen[0].recall.budget_chars, seen[0].gate.fallback_dir, seen[0].backend) == (700, str(home / "second"), "local")
    assert (seen[1].recall.budget_chars, seen[1].backend) == (900, "null")
    assert all(config.deadlines.prefetch <= 0.3 and config.deadlines.close <= 2 for config in seen)


def test_a_store_that_is_shared_by_setting(home: Path, tmp_path: Path) -> None:
    configure(home, store=str(tmp_path / "shared"))
    with agent(home) as manager:
        manager.turn(1, "My cat is called Hugo", "ok", [])
        assert manager.provider.backup_paths() == [str(tmp_path / "shared")]
    assert [event["user"] for event in events(tmp_path / "shared") if event["kind"] == "turn"] == ["My cat is called Hugo"]
    assert not store_of(home).exists()


def test_hooks_take_a_context_that_knows_nothing(home: Path) -> None:
    with agent(home) as manager:
        contextvars.Context().run(manager.provider.sync_turn, "from an empty context", "ok")
        assert "empty context" in contextvars.Context().run(manager.recalled, "what came from an empty context?")


def test_what_the_host_s_status_shows(home: Path) -> None:
    configure(home, backend="null")
    found = MemorydProvider().get_status_config({})
    assert found["backend"] == "null" and found["store"] == str(store_of(home)) and "best effort" in found["checkpoints"]


def test_a_refused_turn_outlasts_the_agent_that_it_is_from(home: Path) -> None:
    store_of(home).write_text("a file is in the way")
    with agent(home, "s1") as other:
        with agent(home, "s2") as evicted:
            evicted.turn(1, "said meanwhile", "ok", [])
        store_of(home).unlink()
        other.turn(1, "said later", "ok", [])
    assert turns(home) == [("said meanwhile", "ok"), ("said later", "ok")]
    assert [event["scope"]["session"] for event in events(store_of(home)) if event["kind"] == "turn"] == ["s2", "s1"]


def test_the_reference_has_every_tool_and_mark(home: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/reference/hermes.md").read_text("utf-8")
    tools = [schema["name"] for schema in MemorydProvider().get_tool_schemas()]
    marks = ["start", "compaction", "branch", "resume", "reset", "rewind", "switch", "delegation", "reconciled"]
    assert [name for name in (*tools, *marks) if f"`{name}`" not in page] == []
