"""The tools of the model, and the mirror of the host's own memory tool."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memoryd.blocking import Memory
from memoryd.core import Config, scope
from tests.adapters.hermes.manager import Manager, agent, said, store_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def call(manager: Manager, name: str, **args: Any) -> dict[str, Any]:
    found = json.loads(manager.handle_tool_call(name, args))
    assert found["success"] is found["ok"]
    return found


def test_search_remember_forget(home: Path) -> None:
    with agent(home) as manager:
        manager.turn(1, "The deploy host is called kestrel", "ok", [])
        assert manager.flush_pending()
        found = call(manager, "memoryd_search", query="deploy host")
        assert found["count"] == 1 and "kestrel" in found["results"][0]["text"] and found["results"][0]["session"] == "s1"
        assert call(manager, "memoryd_remember", key="home city", value="Turin")["key"] == "home city"
        assert call(manager, "memory_backend", action="retrieve", key="home city")["value"] == "Turin"
        assert call(manager, "memoryd_forget", id=found["results"][0]["id"])["erased"] == 1
        assert call(manager, "memoryd_forget", key="home city")["erased"] >= 1
        assert call(manager, "memoryd_search", query="deploy host kestrel")["count"] == 0
    kept = b"".join(path.read_bytes() for path in store_of(home).rglob("*") if path.is_file())
    assert b"kestrel" not in kept and b"Turin" not in kept


@pytest.mark.parametrize(
    ("name", "args", "error"),
    [
        ("memoryd_search", {}, "query is required"),
        ("memoryd_search", {"query": 7}, "query: expected text"),
        ("memoryd_search", {"query": "x", "limit": -1}, "limit"),
        ("memoryd_search", {"query": "x", "as_of": "yesterday"}, "as_of: expected ISO 8601"),
        ("memoryd_remember", {"key": "x"}, "key and value are required"),
        ("memoryd_remember", {"key": "k" * 600, "value": "x"}, "key: is 600 characters long"),
        ("memoryd_forget", {}, "Give either id or key"),
        ("memoryd_forget", {"id": "zz"}, "id: expected the id"),
        ("memoryd_forget", {"key": "none such"}, "Nothing of this user"),
        ("memoryd_checkpoint_read", {"id": "f" * 64}, "checkpoint"),
        ("memoryd_other", {}, "there is no tool 'memoryd_other'"),
        ("memory_backend", {"action": "dance"}, "Unknown action 'dance'"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(home: Path, name: str, args: dict[str, Any], error: str) -> None:
    with agent(home) as manager:
        found = call(manager, name, **args)
    assert found["success"] is False and error in found["error"]


@pytest.mark.parametrize("args", [None, [], "text", 7, {"query": None}, {"query": {"a": 1}}, {"query": "\ud83d", "limit": "3"}])
def test_whatever_the_arguments_are_the_answer_is_json(home: Path, args: Any) -> None:
    with agent(home) as manager:
        for name in manager.tools:
            found = json.loads(manager.provider.handle_tool_call(name, args, task_id="t1"))
            assert isinstance(found["success"], bool)
            manager.provider.handle_tool_call(name, args).encode("utf-8")


def test_calls_at_the_same_time(home: Path) -> None:
    with agent(home) as manager, ThreadPoolExecutor(8) as pool:
        stored = list(pool.map(lambda n: call(manager, "memoryd_remember", key=f"key {n}", value=f"value {n}"), range(24)))
        read = list(pool.map(lambda n: call(manager, "memory_backend", action="retrieve", key=f"key {n}"), range(24)))
        searched = list(pool.map(lambda n: call(manager, "memoryd_search", query=f"value {n}"), range(24)))
    assert all(one["success"] for one in (*stored, *searched))
    assert [one["value"] for one in read] == [f"value {n}" for n in range(24)]


def test_what_was_compacted_can_be_read_again(home: Path) -> None:
    history = said(*((f"turn {number}", "x" * 2000) for number in range(30)))
    with agent(home) as manager:
        _, text = manager.compact(history, required=True)
        listed = call(manager, "memoryd_checkpoint_read")["checkpoints"]
        assert listed == [{"id": text.split()[2].rstrip(":"), "session": "s1", "messages": 60}]
        page = call(manager, "memoryd_checkpoint_read", id=listed[0]["id"][:12], offset=20, limit=2)
    assert [row["text"][:8] for row in page["messages"]] == ["turn 10", "x" * 8]
    assert page["total"] == 60 and len(json.dumps(page)) < 5000


# -- the host's own memory tool -----------------------------------------------------------------------------------------------


def memories(home: Path) -> dict[str, list[tuple[str, bool]]]:
    """Every key of ``default`` with its values, newest first, and whether each is current."""
    with Memory(store_of(home), "default", Config()) as memory, scope(user="default"):
        memory.catch_up(10)
        keys = {memory_.key for memory_ in memory.list_memories()}
        return {key: [(one.value, one.valid_until is None) for one in memory.history(key)] for key in keys}


def values(home: Path) -> list[list[tuple[str, bool]]]:
    return sorted(memories(home).values())


def test_add_replace_patch_and_remove(home: Path) -> None:
    with agent(home) as manager:
        write = manager.provider.on_memory_write
        write("add", "user", "likes tea")
        write("add", "user", "lives in Turin", {"write_origin": "tool", "session_id": "s1"})
        write("add", "memory", "likes tea")
        write("replace", "user", "likes coffee", {"old_text": "tea", "previous_content": "likes tea"})
        write("patch", "user", "lives in Rome", {"old_text": "Turin", "previous_content": "lives in Turin"})
        write("remove", "memory", "", {"old_text": "tea", "previous_content": "likes tea"})
        assert manager.provider.status()["counts"] == {"mirror added": 3, "mirror replaced": 2, "mirror removed": 1}
    assert values(home) == [
        [("likes coffee", True), ("likes tea", False)],
        [("lives in Rome", True), ("lives in Turin", False)],
    ]


def test_an_old_host_tells_a_part_of_the_entry_only(home: Path) -> None:
    with agent(home, contexts=False) as manager:
        write = manager.provider.on_memory_write
        write("add", "user", "likes green tea")
        write("add", "user", "drives a red car")
        write("replace", "user", "drives a blue car", metadata={"old_text": "red"})
        write("remove", "user", "", metadata={"old_text": "green"})
    assert values(home) == [[("drives a blue car", True), ("drives a red car", False)]]


def test_in_doubt_no_entry_is_replaced_or_removed(home: Path) -> None:
    with agent(home) as manager:
        write = manager.provider.on_memory_write
        write("add", "user", "has a red car")
        write("add", "user", "has a red bike")
        write("replace", "user", "has a blue one", {"old_text": "red"})
        write("remove", "user", "", {"old_text": "red"})
        write("remove", "user", "", {"old_text": "green"})
        assert manager.provider.status()["counts"]["mirror in-doubt"] == 3
    assert values(home) == [[("has a blue one", True)], [("has a red bike", True)], [("has a red car", True)]]


def test_the_same_entry_twice_is_one_and_an_edited_one_does_not_take_its_place(home: Path) -> None:
    with agent(home) as manager:
        write = manager.provider.on_memory_write
        write("add", "user", "likes tea")
        write("add", "user", "likes tea")
        write("replace", "user", "likes coffee", {"previous_content": "likes tea"})
        write("add", "user", "likes tea")
    assert values(home) == [[("likes coffee", True), ("likes tea", False)], [("likes tea", True)]]
    assert len(memories(home)) == 2


def test_what_the_old_value_was_is_marked_in_recall(home: Path) -> None:
    with agent(home) as manager:
        write = manager.provider.on_memory_write
        write("add", "user", "the deploy host is heron")
        write("replace", "user", "the deploy host is kestrel", {"previous_content": "the deploy host is heron"})
        block = manager.recalled("which one is the deploy host?")
    assert block.index("kestrel") < (block.index("heron") if "heron" in block else len(block))
    assert "heron" not in block or "superseded" in block[: block.index("heron")].rsplit("\n", 1)[1]
