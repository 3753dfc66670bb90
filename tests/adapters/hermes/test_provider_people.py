"""Whose memory it is: people, chats, automation, profiles, private homes, secrets, copies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memoryd.blocking import Memory
from memoryd.core import Config
from memoryd.hosts import pause, resume
from memoryd.testing.honcho import HonchoServer
from memoryd_hermes import MemorydProvider
from memoryd_hermes._identity import identity_of
from memoryd_hermes._settings import Settings
from tests.adapters.hermes.manager import Manager, agent, events, said, store_of, turns


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "hermes"
    place.mkdir()
    return place


def configure(home: Path, **values: Any) -> None:
    (home / "memoryd").mkdir(parents=True, exist_ok=True)
    (home / "memoryd" / "config.json").write_text(json.dumps(values))


# -- people -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "given", "expected"),
    [
        ("default", {}, "default"),
        ("ada", {}, "ada"),
        ("ada", {"platform": "cli"}, "ada"),
        ("ada", {"platform": "telegram", "user_id": "7"}, "telegram:7"),
        ("ada", {"platform": "discord", "user_id": "7"}, "discord:7"),
        ("ada", {"platform": "telegram", "user_id_alt": "7"}, "telegram:7"),
        ("telegram:7", {"platform": "cli"}, "telegram:7"),
        ("ada", {"platform": "a:b", "user_id": "c"}, "a%3Ab:c"),
        ("ada", {"platform": "a", "user_id": "b:c"}, "a:b:c"),
        ("ada", {"platform": "x", "user_id": "1/cron"}, "x:1%2Fcron"),
    ],
)
def test_no_two_people_become_one(user: str, given: dict[str, Any], expected: str) -> None:
    assert identity_of(Settings(user=user), given, "").user == expected


def test_very_long_names_stay_apart() -> None:
    users = {identity_of(Settings(), {"platform": "x", "user_id": "u" * 600 + end}, "").user for end in "ab"}
    assert len(users) == 2 and all(len(user) <= 500 for user in users)


def test_people_of_one_gateway_recall_only_their_own(home: Path) -> None:
    with agent(home, "s1", platform="telegram", user_id="1", gateway_session_key="agent:main:telegram:dm:1") as ada:
        ada.turn(1, "My cat is called Hugo", "ok", [])
        with agent(home, "s2", platform="telegram", user_id="2", gateway_session_key="agent:main:telegram:dm:2") as bob:
            assert ada.flush_pending()
            assert bob.prefetch_all("what is my cat called?") == ""
            found = json.loads(bob.handle_tool_call("memoryd_search", {"query": "cat Hugo"}))
            assert found["count"] == 0
            refused = json.loads(bob.handle_tool_call("memory_backend", {"action": "list", "user_id": "telegram:1"}))
            assert refused["success"] is False and "another user" in refused["error"]
        assert "Hugo" in ada.recalled("what is my cat called?")
    assert turns(home, "telegram:1") == [("My cat is called Hugo", "ok")]
    assert turns(home, "telegram:2") == []


def test_in_a_shared_chat_each_turn_is_of_whom_it_is_from(home: Path) -> None:
    with agent(home, "s1", platform="telegram", user_id="1", gateway_session_key="group") as manager:
        manager.sync_all("My cat is called Hugo", "ok", author={"id": "1", "name": "Ada", "is_bot": False})
        manager.sync_all("My dog is called Rex", "ok", author={"id": "2", "name": "Bob", "is_bot": False})
        manager.sync_all("beep", "ok", author={"id": "3", "name": "Bot", "is_bot": True})
        assert manager.flush_pending()
        manager.provider.on_turn_start(4, "x", author_id="2", author_name="Bob", author_is_bot=False)
        assert "Rex" in manager.recalled("what is my dog called?")
        assert "Hugo" not in manager.prefetch_all("what is my cat called?")
        told = ("My cat is called Hugo", "My dog is called Rex", "beep", "who said this?")
        manager.on_session_end(said(*((text, "ok") for text in told)))  # several people: nobody knows
        assert manager.provider.status()["doubtful"] == 1
    assert [user for user, _ in turns(home, "telegram:1")] == ["My cat is called Hugo"]
    assert [user for user, _ in turns(home, "telegram:2")] == ["My dog is called Rex"]
    assert [user for user, _ in turns(home, "telegram:3/bot")] == ["beep"]


def test_the_chat_is_the_key_and_a_title_that_a_model_made_is_nothing(home: Path) -> None:
    key = "agent:main:telegram:dm:1"
    with agent(home, "s1", platform="telegram", user_id="1", gateway_session_key=key, session_title="Cats", session_title_source="llm") as one:
        one.turn(1, "one", "ok", [])
    with agent(home, "s2", platform="telegram", user_id="1", gateway_session_key=key, session_title="Mine", session_title_source="user") as two:
        two.turn(1, "two", "ok", [])
    found = events(store_of(home))
    assert {event["scope"]["workspace"] for event in found} == {key}
    data = [event["data"] for event in found if event.get("mark") == "start"]
    assert [(mark["chat"], mark.get("title")) for mark in data] == [(key, None), (key, "Mine")]


def test_an_agent_that_the_host_makes_to_compact_is_the_one_whose_session_it_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows the session and nobody: what it fills in and archives is of the session's user."""
    monkeypatch.setenv("_HERMES_GATEWAY", "1")
    history = said(("one", "1"), ("missed", "2"))
    with agent(home, "s1", platform="telegram", user_id="1") as manager:
        manager.sync_all("one", "1")
        assert manager.flush_pending()
        with agent(home, "s1", platform=None, agent_identity=None) as temporary:
            temporary.compact(history, required=True)
    with agent(home, "s1", platform=None) as after_a_restart:
        after_a_restart.on_session_end([*history, *said(("three", "3"))])
        listed = json.loads(after_a_restart.handle_tool_call("memoryd_checkpoint_read", {}))
    assert [one["session"] for one in listed["checkpoints"]] == ["s1"]
    assert [user for user, _ in turns(home, "telegram:1")] == ["one", "missed", "three"]
    assert turns(home, "default") == []


def test_in_a_gateway_an_agent_of_nobody_adds_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_HERMES_GATEWAY", "1")
    with agent(home, "unknown", platform=None) as temporary:
        _, text = temporary.compact(said(("whose is it?", "1")), required=True)
        assert temporary.provider.status()["doubtful"] == 1
    assert turns(home, None) == [] and "2 messages archived" in text


# -- automation ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("context", ["cron", "subagent", "flush", "something-new"])
def test_what_no_person_said_is_kept_apart_with_its_label(home: Path, context: str) -> None:
    with agent(home, "c1", agent_context=context) as manager:
        manager.turn(1, "summarise the harbour news", "The crane is broken", [])
        manager.provider.on_memory_write("add", "user", "likes cranes")
        _, text = manager.compact(said(("summarise the harbour news", "The crane is broken")), required=True)
        assert "archived" in text
    with agent(home, "s1") as manager:
        assert manager.prefetch_all("what about the harbour crane?") == ""
        if context in ("cron", "subagent", "flush"):
            found = json.loads(manager.handle_tool_call("memoryd_search", {"query": "harbour crane", "said_by": context}))
            assert found["count"] >= 1
    stored = [event for event in events(store_of(home)) if event["kind"] in ("turn", "memory")]
    assert {(event["scope"]["user"], event["scope"]["agent"]) for event in stored} == {(f"default/{context}", context)}
    assert turns(home, "default") == []


def test_a_cron_job_recalls_what_the_user_said(home: Path) -> None:
    with agent(home, "s1") as manager:
        manager.turn(1, "The deploy host is called kestrel", "ok", [])
    with agent(home, "c1", agent_context="cron", platform="cron") as manager:
        assert "kestrel" in manager.recalled("what is the deploy host called?")


@pytest.mark.parametrize(("setting", "user"), [("same", "default"), ("off", "default/cron")])
def test_automation_by_setting(home: Path, setting: str, user: str) -> None:
    configure(home, automation=setting)
    with agent(home, "c1", agent_context="cron") as manager:
        manager.turn(1, "run the report", "done", [])
        manager.on_session_end(said(("run the report", "done"), ("and again", "done")))
        manager.provider.on_delegation("look it up", "found", child_session_id="k1")
    expected = {"same": ["run the report", "and again", "look it up"], "off": []}[setting]
    assert [said_ for said_, _ in turns(home, None)] == expected
    assert {event["scope"]["agent"] for event in events(store_of(home)) if event["kind"] == "turn"} <= {"cron", "subagent"}


def test_what_a_subagent_did_is_recorded_apart(home: Path) -> None:
    with agent(home) as manager:
        manager.sync_all("find the harbour master", "I asked a helper.")
        manager.provider.on_delegation("find the harbour master", "It is Ms Crane", child_session_id="child-1")
    found = [event for event in events(store_of(home), "default/subagent") if event["kind"] in ("turn", "mark")]
    assert [(event["kind"], event["scope"]["session"]) for event in found] == [("mark", "child-1"), ("turn", "child-1")]
    assert found[0]["data"] == {"parent": "s1"} and found[1]["assistant"] == "It is Ms Crane"
    assert len(turns(home, "default")) == 1


# -- private ------------------------------------------------------------------------------------------------------------------


def whole_life(manager: Manager) -> str:
    history = said(("my secret is xyzzy", "noted xyzzy"))
    manager.turn(1, "my secret is xyzzy", "noted xyzzy", [])
    manager.provider.on_memory_write("add", "user", "xyzzy")
    manager.provider.on_delegation("xyzzy", "xyzzy", child_session_id="c")
    manager.handle_tool_call("memoryd_remember", {"key": "xyzzy", "value": "xyzzy"})
    manager.handle_tool_call("memory_backend", {"action": "store", "key": "xyzzy", "value": "xyzzy"})
    _, text = manager.compact(history, required=True)
    manager.on_session_end(history)
    return text


def test_a_private_home_writes_nothing(home: Path) -> None:
    configure(home, private="true")
    with agent(home) as manager:
        assert "nothing-to-archive" in whole_life(manager)
        assert manager.provider.system_prompt_block() == ""
    assert sorted(path.name for path in home.iterdir()) == ["memoryd"]


def test_a_home_that_became_private_recalls_and_writes_nothing_more(home: Path) -> None:
    with agent(home) as manager:
        manager.turn(1, "The deploy host is called kestrel", "ok", [])
    before = events(store_of(home))
    configure(home, private=True)
    with agent(home, "s2") as manager:
        assert "kestrel" in manager.recalled("what is the deploy host called?")
        whole_life(manager)
    assert events(store_of(home)) == before
    assert not [path for path in home.rglob("*") if path.is_file() and b"xyzzy" in path.read_bytes()]


def test_while_recording_is_paused_nothing_is_kept_and_later_nothing_is_filled_in(home: Path) -> None:
    with agent(home) as manager:
        manager.turn(1, "before", "ok", [])
        assert manager.flush_pending()
        began = pause(store_of(home)).since
        whole_life(manager)
        resume(store_of(home))
        rows = [*said(("before", "ok")), *said(("my secret is xyzzy", "noted"), timestamp=began / 1e6 + 0.0001), *said(("after", "ok"))]
        manager.on_session_end(rows)
    assert [user for user, _ in turns(home, "default")] == ["before", "after"]


def test_a_pause_counts_though_the_store_cannot_be_opened_meanwhile(home: Path) -> None:
    wrong = store_of(home) / "memoryd.toml"
    with agent(home) as manager:
        manager.turn(1, "before", "ok", [])
        assert manager.flush_pending()
    wrong.write_text("backend = 5")
    with agent(home) as manager:
        pause(store_of(home))
        manager.turn(1, "my secret is xyzzy", "noted", [])
        assert manager.flush_pending()
        resume(store_of(home))
        wrong.unlink()
        manager.turn(2, "after", "ok", [])
    assert [user for user, _ in turns(home, "default")] == ["before", "after"]


def test_what_was_said_in_a_pause_is_in_no_checkpoint_of_after_it(home: Path) -> None:
    with agent(home) as manager:
        began = pause(store_of(home)).since / 1e6 + 0.0001
        resume(store_of(home))
        rows = [
            *said(("before", "ok"), timestamp=began - 60), *said(("my secret is xyzzy", "the xyzzy is noted"), timestamp=began),
            *said(("after", "ok"), timestamp=began + 60),
        ]  # fmt: skip
        _, text = manager.compact(rows, required=True)
        assert "4 messages archived" in text
        assert "nothing-to-archive" in manager.compact(said(("xyzzy", "xyzzy"), timestamp=began), required=True)[1]
    assert not [path for path in home.rglob("*") if path.is_file() and b"xyzzy" in path.read_bytes()]


# -- profiles, secrets, copies ------------------------------------------------------------------------------------------------


@contextmanager
def host_with_profiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A host that serves several profiles: secrets come from the scope, and reading them without one raises."""
    scope: dict[str, str] = {}

    def get_secret(name: str, default: str | None = None) -> str | None:
        if not scope:
            raise RuntimeError("no profile is in scope")
        return scope.get(name, default)

    module = ModuleType("agent.secret_scope")
    module.get_secret = get_secret  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "agent", ModuleType("agent"))
    monkeypatch.setitem(__import__("sys").modules, "agent.secret_scope", module)
    yield scope


def test_two_profiles_with_two_keys_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HONCHO_API_KEY", "key-of-the-process")
    keys: dict[str, str] = {}
    providers = {}
    with host_with_profiles(monkeypatch) as scope, HonchoServer() as one, HonchoServer() as two:
        for name, server in (("a", one), ("b", two)):
            place = tmp_path / name
            configure(place, backend="honcho", honcho_url=server.url)
            scope |= {"HONCHO_API_KEY": f"key-of-{name}", "HONCHO_WORKSPACE_ID": server.workspace}
            providers[name] = MemorydProvider(lambda path, config: opened(path, config, keys))
            providers[name].initialize("s1", hermes_home=str(place), platform="cli")
            scope.clear()  # and from here on nobody may ask
        for name, provider in providers.items():
            provider.sync_turn(f"I am {name}", "ok", session_id="s1")
        for name, server in (("a", one), ("b", two)):
            with providers[name]._bound.store.memory() as memory:
                assert memory.drain(120).remote
            received = server.everything_received()
            assert f"key-of-{name}".encode() in received and f"I am {name}".encode() in received
            other = "b" if name == "a" else "a"
            assert f"key-of-{other}".encode() not in received and f"I am {other}".encode() not in received
            assert b"key-of-the-process" not in received
        for provider in providers.values():
            provider.shutdown()
    assert turns(tmp_path / "a") == [("I am a", "ok")] and turns(tmp_path / "b") == [("I am b", "ok")]


def opened(path: Path, config: Config, keys: dict[str, str]) -> Memory:
    keys[str(path)] = str(config.backends["honcho"]["api_key"])
    return Memory(path, "default", config)


def test_a_profile_without_a_key_does_not_take_the_process_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HONCHO_API_KEY", "key-of-the-process")
    monkeypatch.setenv("HONCHO_URL", "http://127.0.0.1:9/of-the-process")
    seen: list[Config] = []
    configure(tmp_path, backend="honcho")
    with host_with_profiles(monkeypatch) as scope:
        scope["SOMETHING"] = "else"
        with agent(tmp_path, provider=MemorydProvider(lambda path, config: seen.append(config) or Memory(path, "default", config))) as manager:
            manager.turn(1, "My cat is called Hugo", "ok", [])
            assert manager.flush_pending()
            assert "HONCHO_URL" in manager.provider.status()["notes"][0]
    assert (seen[0].backends["honcho"]["url"], seen[0].backends["honcho"]["api_key"]) == ("", "")
    assert turns(tmp_path) == [("My cat is called Hugo", "ok")]


def test_a_slow_remote_backend_slows_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing answers at that address: turns are kept, recall is local, and the end comes."""
    configure(tmp_path, backend="honcho", honcho_url="http://127.0.0.1:9")
    with agent(tmp_path) as manager:
        manager.turn(1, "The deploy host is called kestrel", "ok", [])
        assert manager.flush_pending()
        assert "kestrel" in manager.recalled("what is the deploy host called?")
        assert json.loads(manager.handle_tool_call("memoryd_remember", {"key": "city", "value": "Turin"}))["success"]
    assert turns(tmp_path) == [("The deploy host is called kestrel", "ok")]


def test_a_copied_profile_begins_anew_and_the_original_stays(tmp_path: Path) -> None:
    original, copy = tmp_path / "a", tmp_path / "b"
    original.mkdir()
    with agent(original) as manager:
        manager.turn(1, "My cat is called Hugo", "ok", [])
    shutil.copytree(original, copy)
    with agent(copy) as manager:
        assert manager.prefetch_all("what is my cat called?") == ""
        manager.turn(1, "My dog is called Rex", "ok", [])
        assert manager.flush_pending()
        note = manager.provider.status()["notes"][0]
        aside = next(path for path in copy.iterdir() if path.name.startswith("memoryd-store.copied-"))
        assert str(original / "memoryd-store") in note and str(aside) in note
    assert turns(original) == [("My cat is called Hugo", "ok")]
    assert turns(copy) == [("My dog is called Rex", "ok")]
    assert [event["user"] for event in events(aside) if event["kind"] == "turn"] == ["My cat is called Hugo"]
    with agent(copy) as manager:
        assert manager.provider.status()["notes"] == []


def test_a_home_that_was_moved_or_is_reached_by_a_link_keeps_its_memory(tmp_path: Path) -> None:
    first, second, link = tmp_path / "a", tmp_path / "b", tmp_path / "link"
    first.mkdir()
    with agent(first) as manager:
        manager.turn(1, "My cat is called Hugo", "ok", [])
    first.rename(second)
    link.symlink_to(second)
    for place in (second, link):
        with agent(place) as manager:
            assert "Hugo" in manager.recalled("what is my cat called?")
            assert manager.provider.status()["notes"] == []


def test_what_the_host_s_own_clone_copies_holds_no_memory(home: Path) -> None:
    configure(home, user="ada")
    with agent(home) as manager:
        manager.turn(1, "My cat is called Hugo", "ok", [])
    assert [path.name for path in (home / "memoryd").iterdir()] == ["config.json"]
    assert turns(home, "ada") == [("My cat is called Hugo", "ok")]
