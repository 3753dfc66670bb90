"""Real Hermes Agents with memoryd inside: what is in the store afterwards."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable

import pytest

from tests.adapters.hermes.hosts.world import World, end

pytestmark = pytest.mark.hosts

MakeWorld = Callable[..., World]
BOTH = pytest.mark.parametrize("host", ["host19", "host22"])
FACTS = ["I live in Turin and drink barley coffee", "my deploy host is called kestrel", "the cat answers to Pixel"]


def results(told: list[dict[str, object]]) -> list[object]:
    assert not [line for line in told if "error" in line], told
    return [line.get("result") for line in told]


@BOTH
def test_three_turns_and_recall_in_a_new_process(make_world: MakeWorld, host: str) -> None:
    world = make_world(host)
    told = results(world.drive(("agent", "s1"), *(("turn", fact) for fact in FACTS), ("end", None)))
    assert told[0] == {"providers": ["memoryd"]}
    assert world.turns() == [("s1", fact) for fact in FACTS]
    world.drive(("agent", "s2"), ("turn", "what is my deploy host called?"), ("end", None))
    asked = world.model.asked[-1]["last_user"]
    assert "<memory-context>" in asked and "kestrel" in asked
    assert world.turns()[3:] == [("s2", "what is my deploy host called?")]  # and none of what was recalled


@BOTH
def test_killed_right_after_the_answer(make_world: MakeWorld, host: str) -> None:
    """A turn is there once its hook returned, though the process never ends in order."""
    world = make_world(host)
    process = world.start(("agent", "s1"), ("turn", FACTS[0]), ("flush", None), ("turn", FACTS[1]), ("flush", None), ("pause", "answered"))
    world.paused("answered")
    assert end(process, signal.SIGKILL) == -signal.SIGKILL
    assert world.turns() == [("s1", FACTS[0]), ("s1", FACTS[1])]


@BOTH
def test_a_crash_without_goodbye(make_world: MakeWorld, host: str) -> None:
    """``os._exit`` right after the answer: the host may not have handed the turn over yet, what it handed over is there."""
    world = make_world(host)
    world.drive(("agent", "s1"), ("turn", FACTS[0]), ("flush", None), ("exit", 3), code=3)
    assert world.turns() == [("s1", FACTS[0])]


@BOTH
def test_terminated(make_world: MakeWorld, host: str) -> None:
    world = make_world(host)
    process = world.start(("agent", "s1"), ("turn", FACTS[0]), ("flush", None), ("pause", "answered"))
    world.paused("answered")
    end(process, signal.SIGTERM)
    assert world.turns() == [("s1", FACTS[0])]


@BOTH
def test_the_command_of_the_host(make_world: MakeWorld, host: str) -> None:
    """``hermes chat -q`` twice, and the commands that the host gives the active provider."""
    world = make_world(host)
    world.hermes("chat", "-q", "please remember that the deploy host is called kestrel")
    world.hermes("chat", "-q", "how is the deploy host called?")
    assert "kestrel" in world.model.asked[-1]["last_user"].partition("<memory-context>")[2]
    assert [user for _, user in world.turns()] == [
        "please remember that the deploy host is called kestrel", "how is the deploy host called?",
    ]  # fmt: skip
    status = world.hermes("memoryd", "status")
    assert ("ok" in status and "events 2" in status.replace("  ", " ")) or "events" in status
    assert "kestrel" in world.hermes("memoryd", "recall", "deploy", "host")
    assert f"store: {world.store}" in world.hermes("memoryd", "config")
    assert "hermes provider" in world.hermes("memoryd", "doctor")
    assert "mode: block" in world.hermes("memoryd", "gate")
    world.hermes("memoryd", "checkpoints")
    assert "memoryd" in world.hermes("memory", "status")


@BOTH
def test_another_profile_by_name(make_world: MakeWorld, host: str) -> None:
    world = make_world(host)
    world.hermes("profile", "create", "work")
    other = world.home / "profiles/work"
    world.hermes("chat", "-q", "the default profile likes tea")
    for words in (("memoryd", "config", "--target-profile", "work"), ("memoryd", "--target-profile", "work", "config")):
        assert f"store: {other / 'memoryd-store'}" in world.hermes(*words)
    assert "tea" not in world.hermes("memoryd", "recall", "--target-profile", "work", "tea")
    assert "nobody" in world.hermes("memoryd", "status", "--target-profile", "nobody", code=1)


@pytest.mark.parametrize(("host", "flag"), [("host19", "--clone-all"), ("host22", "--clone"), ("host22", "--clone-all")])
def test_a_cloned_profile_has_a_memory_of_its_own(make_world: MakeWorld, host: str, flag: str) -> None:
    """A full clone copies a live store with it: the copy is set aside, and neither profile sees the other's."""
    world = make_world(host)
    world.hermes("chat", "-q", FACTS[1])
    world.hermes("profile", "create", "work", flag)
    other = world.home / "profiles/work"
    world.hermes("-p", "work", "chat", "-q", "how is the deploy host called?")
    assert "memory-context" not in world.model.asked[-1]["last_user"]
    assert [user for _, user in world.turns()] == [FACTS[1]]
    assert [user for _, user in world.turns(other / "memoryd-store")] == ["how is the deploy host called?"]
    aside = list(other.glob("memoryd-store.copied-*"))
    assert len(aside) == (flag == "--clone-all")
    for store in aside:
        assert [user for _, user in world.turns(store)] == [FACTS[1]]


def test_a_clone_without_the_folder_is_found_by_doctor(make_world: MakeWorld) -> None:
    """The old host clones config.yaml and not what it names."""
    world = make_world("host19")
    world.hermes("profile", "create", "work", "--clone")
    other = world.home / "profiles/work"
    world.environ["HERMES_HOME"] = str(other)
    assert "plugins/memoryd is missing" in world.memoryd("doctor", "hermes", code=1)
    world.memoryd("install", "hermes")
    assert "plugins/memoryd is missing" not in world.memoryd("doctor", "hermes", code=3)


@BOTH
def test_setup_by_the_host(make_world: MakeWorld, host: str) -> None:
    """The argument form, without a terminal: memoryd is the provider, comments stay, nothing is asked."""
    world = make_world(host)
    config = world.home / "config.yaml"
    config.write_text(config.read_text().replace("provider: memoryd", "provider: ''"))
    refused = world.hermes("memoryd", "status", code=None)
    assert "invalid choice" in refused or "is not a `hermes` command" in refused
    world.hermes("memory", "setup", "memoryd")
    text = config.read_text()
    assert text.startswith("# a comment that stays\n") and "provider: memoryd" in text
    assert json.loads((world.home / "memoryd/config.json").read_text())["backend"] == "local"
    world.hermes("memoryd", "status")


@BOTH
def test_settings_from_the_dashboard(make_world: MakeWorld, host: str) -> None:
    """What the form says is what the provider does, and a key goes into ``.env`` alone."""
    world = make_world(host)
    form = {"backend": "local", "auto_recall": "false", "tools": "false", "user": "ada", "honcho_api_key": "a-secret-key"}
    steps = [("agent", "s1"), ("turn", FACTS[1]), ("turn", "how is the deploy host called?"), ("end", None)]
    results(world.drive(("dashboard", form), *steps))
    assert "memory-context" not in world.model.asked[-1]["last_user"]
    assert "memoryd_search" not in world.model.asked[0]["tools"]
    assert {row["scope"]["user"] for row in world.events("turn")} == {"ada"}
    holders = [path for path in world.home.rglob("*") if path.is_file() and b"a-secret-key" in path.read_bytes()]
    assert [path.name for path in holders] == [".env"]


@BOTH
def test_forced_compaction_is_archived(make_world: MakeWorld, host: str) -> None:
    world = make_world(host)
    turns = [f"turn {number} {FACTS[number % 3]}" for number in range(9)]
    told = results(
        world.drive(("agent", "s1"), *(("turn", text) for text in turns), ("compress", None), ("turn", "after"), ("end", None))
    )
    compressed = told[10]
    assert isinstance(compressed, dict) and compressed["after"] < compressed["before"] == 18
    (found,) = world.archived("s1")[:1]
    rows = world.restored(found["id"])
    assert [row["content"] for row in rows if row["role"] == "user"] == turns
    assert world.turns() == [("s1", text) for text in [*turns, "after"]]
    summary = next(asked["text"] for asked in world.model.asked if asked["kind"] == "summary")
    assert (found["id"][:12] in summary) or host == "host19"


@BOTH
def test_a_tool_call(make_world: MakeWorld, host: str) -> None:
    world = make_world(host)
    call = 'CALL_TOOL memoryd_remember {"key": "city", "value": "Turin"}'
    results(world.drive(("agent", "s1"), ("turn", call), ("end", None)))
    assert "memoryd_search" in world.model.asked[0]["tools"]
    (write,) = world.events("memory")
    assert (write["key"], write["value"]) == ("city", "Turin")


@BOTH
def test_the_memory_of_the_host_is_mirrored(make_world: MakeWorld, host: str) -> None:
    world = make_world(host)
    add = 'CALL_TOOL memory {"action": "add", "target": "memory", "content": "The server is kestrel"}'
    change = '"action": "replace", "content": "The server is osprey"' if host == "host19" else '"action": "patch", "content": "osprey"'
    replace = f'CALL_TOOL memory {{{change}, "target": "memory", "old_text": "kestrel"}}'
    results(world.drive(("agent", "s1"), ("turn", add), ("turn", replace), ("end", None)))
    writes = [(row["key"], row["value"]) for row in world.events("memory")]
    assert [value for _, value in writes] == ["The server is kestrel", "The server is osprey"]
    current = world.memoryd("--home", str(world.store), "list")
    assert "osprey" in current and "kestrel" not in current


@BOTH
def test_a_multimodal_turn(make_world: MakeWorld, host: str) -> None:
    world = make_world(host)
    world.drive(("agent", "s1"), ("turn", FACTS[1]), ("end", None))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    parts = [{"type": "text", "text": "what does my deploy host kestrel look like?"}, image]
    world.drive(("agent", "s2"), ("turn", parts), ("compress", None), ("end", None))
    kept = world.memoryd("--home", str(world.store), "export", "--all-users")
    assert "what does my deploy host kestrel look like?" in kept
    assert "memory-context" not in kept and "System note" not in kept and "iVBORw0KGgo" not in kept


@BOTH
def test_a_new_session_in_one_process(make_world: MakeWorld, host: str) -> None:
    world = make_world(host)
    results(world.drive(("agent", "s1"), ("turn", FACTS[0]), ("new", None), ("turn", FACTS[1]), ("end", None)))
    assert [user for _, user in world.turns()] == FACTS[:2]


@BOTH
def test_two_profiles_in_one_process(make_world: MakeWorld, host: str) -> None:
    """As a gateway has them: each in its own store, none in the other's."""
    world = make_world(host)
    other = world.home / "profiles/work"
    other.mkdir(parents=True)
    world.configure(home=other)
    results(
        world.drive(
            ("agent", "s1"), ("turn", FACTS[0]), ("flush", None),
            ("home", str(other)), ("agent", "s1"), ("turn", FACTS[1]), ("end", None),
            ("home", str(world.home)), ("agent", "s2"), ("turn", FACTS[2]), ("end", None),
        )
    )  # fmt: skip
    assert world.turns() == [("s1", FACTS[0]), ("s2", FACTS[2])]
    assert world.turns(other / "memoryd-store") == [("s1", FACTS[1])]


@BOTH
def test_a_slow_remote_backend_is_not_waited_for(make_world: MakeWorld, host: str) -> None:
    """Honcho's address takes connections and never answers: turns go on, and what is local is recalled."""
    import socket

    world = make_world(host)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        world.settings(backend="honcho", honcho_url=address)
        (world.home / ".env").write_text("HONCHO_API_KEY=a-key\n")
        began = time.monotonic()
        told = world.drive(("agent", "s1"), ("turn", FACTS[1]), ("turn", "how is the deploy host called?"), ("end", None))
        results(told)
        assert time.monotonic() - began < 60  # the host would wait 8 s for each
        assert "kestrel" in world.model.asked[-1]["last_user"].partition("<memory-context>")[2]
    assert [user for _, user in world.turns()] == [FACTS[1], "how is the deploy host called?"]


# -- how it is found ---------------------------------------------------------------------------------------------------------


def test_the_folder_on_the_old_host(make_world: MakeWorld) -> None:
    world = make_world("host19")
    assert (world.home / "plugins/memoryd/__init__.py").exists()
    (found,) = results(world.drive(("found", "memoryd")))
    assert isinstance(found, dict)
    assert found["provider"] == "memoryd_hermes._provider:MemorydProvider"
    assert (found["commands"], "backend" in found["fields"]) == (["memoryd"], True)
    assert found["dir"] == str(world.home / "plugins/memoryd")


@pytest.mark.parametrize("layout", ["entry point", "folder"])
def test_both_layouts_on_the_new_host(make_world: MakeWorld, layout: str) -> None:
    world = make_world("host22")
    if layout == "folder":
        config = world.home / "config.yaml"
        config.write_text(config.read_text() + "plugins: {isolation: host}\n")  # the folder is for such a host
        world.memoryd("install", "hermes")
        config.write_text(config.read_text().replace("isolation: host", "isolation: in_process"))
    assert (world.home / "plugins/memoryd").exists() == (layout == "folder")
    (found,) = results(world.drive(("found", "memoryd")))
    assert isinstance(found, dict)
    assert "memoryd" in found["names"]
    assert found["provider"] == "memoryd_hermes._provider:MemorydProvider"
    assert (found["commands"], "backend" in found["fields"]) == (["memoryd"], True)
    assert found["skill"].endswith("memoryd/skills/maintenance/SKILL.md")
    assert "memoryd_hermes.memoryd" not in found["ours"]  # the host loads the folder by its path, the code behind it is there once


def test_in_a_process_of_its_own(make_world: MakeWorld) -> None:
    """``plugins.isolation: host``: the provider runs beside the host, not in it."""
    world = make_world("host22")
    config = world.home / "config.yaml"
    config.write_text(config.read_text() + "plugins: {isolation: host}\n")
    world.memoryd("install", "hermes")
    turns = [f"turn {number} {FACTS[number % 3]}" for number in range(9)]
    results(world.drive(("agent", "s1"), *(("turn", text) for text in turns), ("compress", None), ("end", None)))
    assert world.turns() == [("s1", text) for text in turns]
    (found,) = world.archived("s1")
    assert [row["content"] for row in world.restored(found["id"]) if row["role"] == "user"] == turns
    world.drive(("agent", "s2"), ("turn", "how is the deploy host called?"), ("end", None))
    assert "kestrel" in world.model.asked[-1]["last_user"].partition("<memory-context>")[2]


def test_the_old_host_cannot_be_refused(make_world: MakeWorld) -> None:
    """Best effort, and it is said: an archive that fails does not stop the compaction of a host without the contract."""
    world = make_world("host19")
    turns = [f"turn {number}" for number in range(9)]
    told = world.drive(
        ("agent", "s1"), ("turn", "zero"), ("break", None), *(("turn", text) for text in turns), ("compress", None), ("end", None)
    )
    compressed = told[-2]["result"]
    assert compressed["after"] < compressed["before"]
    assert "no checkpoint contract" in world.memoryd("install", "hermes", "--gate", code=64)
    assert "0.19.0 has no checkpoint contract" in world.hermes("memoryd", "doctor", code=None)
