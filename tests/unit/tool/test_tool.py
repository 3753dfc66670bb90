"""The tool ``memory_backend``: every action, every error word for word, and nothing that a model may send raises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memoryd
from memoryd import tool
from memoryd.blocking import Memory
from memoryd.errors import ClosedError

CALLS: dict[str, dict[str, Any]] = {
    "store": {"key": "city", "value": "Oslo"},
    "retrieve": {"key": "city"},
    "query": {"query_text": "oslo"},
    "list": {},
    "delete": {"key": "city"},
    "info": {},
    "evaluate": {},
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path) as opened, memoryd.scope(user="ada", session="s1"):
        yield opened


def ask(memory: Memory, action: str, **parameters: Any) -> dict[str, Any]:
    answer = tool.call({"action": action, **parameters}, memory)
    assert answer["ok"] is answer["success"]
    json.dumps(answer)
    return answer


def error(memory: Memory, action: str, **parameters: Any) -> str:
    answer = ask(memory, action, **parameters)
    assert set(answer) == {"success", "ok", "error"}
    assert answer["success"] is False
    return str(answer["error"])


# -- what each action answers ------------------------------------------------------------------------------------------------------


def test_store_and_retrieve(memory: Memory) -> None:
    stored = ask(memory, "store", key="city", value="Oslo", metadata={"type": "fact", "from": "form"})
    assert stored == {"success": True, "ok": True, "key": "city"}
    found = ask(memory, "retrieve", key="city")
    assert set(found) == {"success", "ok", "key", "value", "type", "metadata", "created_at", "updated_at"}
    assert (found["key"], found["value"], found["type"]) == ("city", "Oslo", "fact")
    assert found["metadata"]["from"] == "form"
    assert found["created_at"] == found["updated_at"]


def test_a_store_replaces_and_keeps_the_first_time(memory: Memory) -> None:
    ask(memory, "store", key="city", value="Oslo", metadata={"from": "form"})
    ask(memory, "store", key="city", value="Bergen")
    found = ask(memory, "get", key="city")
    assert (found["value"], found["metadata"]) == ("Bergen", {})
    assert found["created_at"] < found["updated_at"]


def test_query_and_list(memory: Memory) -> None:
    ask(memory, "store", key="city", value="Oslo")
    ask(memory, "store", key="animal", value="zebra", metadata={"type": "fact"})
    found = ask(memory, "query", query_text="OSL")
    assert found == {
        "success": True, "ok": True, "count": 1, "results": [{"key": "city", "value": "Oslo", "type": "preference", "metadata": {}}]
    }  # fmt: skip
    assert ask(memory, "query", query_text="%")["results"] == []
    assert ask(memory, "list") == {
        "success": True, "ok": True, "count": 2, "keys": ["animal", "city"],
        "entries": [{"key": "animal", "type": "fact"}, {"key": "city", "type": "preference"}],
    }  # fmt: skip


def test_delete(memory: Memory) -> None:
    ask(memory, "store", key="city", value="Oslo")
    assert ask(memory, "delete", key="city") == {"success": True, "ok": True, "key": "city"}
    assert error(memory, "retrieve", key="city") == "No memory found for key 'city'."
    assert ask(memory, "delete", key="city")["success"], "a missing key is gone already"


def test_info(memory: Memory) -> None:
    expected = {"success": True, "ok": True, "backend": "local", "is_cloud": False, "cloud": False, "available": True}
    assert ask(memory, "info") == expected


def test_evaluate(memory: Memory) -> None:
    report = ask(memory, "evaluate")
    assert {one["name"] for one in report["results"]} == {"local", "null"}
    assert report["recommendation"].startswith("best backend: local (SQLite)")


def test_aliases_and_null(memory: Memory) -> None:
    assert ask(memory, "store", uid="ada", key="city", value="Oslo", meta={"type": "fact"}, user_id=None, metadata=None)["ok"]
    assert ask(memory, "get", key="city")["type"] == "fact"
    assert ask(memory, "query", query="oslo", query_text=None)["count"] == 1


# -- errors, word for word ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "parameters", "said"),
    [
        ("store", {}, "key and value are required for 'store'."),
        ("store", {"key": "city"}, "key and value are required for 'store'."),
        ("store", {"key": "", "value": "Oslo"}, "key and value are required for 'store'."),
        ("store", {"key": "city", "value": None}, "key and value are required for 'store'."),
        ("retrieve", {}, "key is required for 'retrieve'."),
        ("get", {"key": ""}, "key is required for 'retrieve'."),
        ("delete", {"key": None}, "key is required for 'delete'."),
        ("query", {}, "query_text is required for 'query'."),
        ("retrieve", {"key": "K"}, "No memory found for key 'K'."),
        ("A", {}, "Unknown action 'A'. Use: store, retrieve, query, list, delete, info, evaluate"),
        ("", {}, "Unknown action ''. Use: store, retrieve, query, list, delete, info, evaluate"),
    ],
)
def test_an_error_names_what_was_wrong(memory: Memory, action: str, parameters: dict[str, Any], said: str) -> None:
    assert error(memory, action, **parameters) == said


def test_an_empty_value_is_a_value(memory: Memory) -> None:
    assert ask(memory, "store", key="city", value="")["success"]
    assert ask(memory, "retrieve", key="city")["value"] == ""


# -- whose memory ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", tool.ACTIONS)
def test_another_user_than_the_hosts_is_refused(memory: Memory, action: str) -> None:
    with memoryd.scope(user="bob"):
        memory.store("city", "Bergen")
    said = error(memory, action, **CALLS[action], user_id="bob")
    assert said == "user_id names another user than the host's, which is refused (tool.cross_user = false)."
    assert error(memory, action, **CALLS[action], uid="bob") == said
    with memoryd.scope(user="bob"):
        found = memory.retrieve("city")
    assert found is not None and found.value == "Bergen"


def test_every_action_has_a_call() -> None:
    assert set(CALLS) == set(tool.ACTIONS) == set(tool.SCHEMA["properties"]["action"]["enum"])


def test_cross_user_allows_it(tmp_path: Path) -> None:
    with Memory(tmp_path, config={"tool.cross_user": True}) as memory, memoryd.scope(user="ada"):
        ask(memory, "store", user_id="bob", key="city", value="Bergen")
        assert ask(memory, "list")["keys"] == []
        assert ask(memory, "retrieve", user_id="bob", key="city")["value"] == "Bergen"


def test_without_a_bound_user_the_call_says_whose(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        assert error(memory, "list") == "user_id is required."
        assert ask(memory, "store", user_id="bob", key="city", value="Bergen")["success"]
        assert tool.call({"action": "get", "key": "city"}, memory, default_user="bob")["value"] == "Bergen"


def test_where_memory_is_off_nothing_is_claimed(tmp_path: Path) -> None:
    with Memory(tmp_path, config={"backend": "null"}) as memory, memoryd.scope(user="ada"):
        assert "memory is off" in error(memory, "store", key="city", value="Oslo")
        assert ask(memory, "list")["count"] == 0
        assert ask(memory, "info")["backend"] == "null"
    with Memory(tmp_path) as memory, memoryd.scope(user="ada", session="s1"):
        ask(memory, "store", key="city", value="Oslo")
        with memoryd.scope(session="s2", private=True):
            assert "memory is off" in error(memory, "store", key="city", value="Bergen")
            assert "memory is off" in error(memory, "delete", key="city")
        assert ask(memory, "retrieve", key="city")["value"] == "Oslo"


# -- hostile calls -----------------------------------------------------------------------------------------------------------------

LOOP: dict[str, Any] = {}
LOOP["loop"] = LOOP
HOSTILE = [None, 7, 1.5, float("nan"), True, [], {}, b"bytes", object(), "", "\0", "\ud800", "x" * 1_000_000, "x" * 501, LOOP, [LOOP], 10**5000]


def test_a_call_that_is_none_is_answered(memory: Memory) -> None:
    for arguments in (None, 7, "store", [], [{"action": "store"}], b"{}", object(), {}, {7: 7}):
        answer = tool.call(arguments, memory)
        assert (answer["success"], answer["ok"]) == (False, False), arguments
        assert answer["error"]


@pytest.mark.parametrize("name", tool.SCHEMA["properties"])
def test_a_hostile_value_is_answered(memory: Memory, name: str) -> None:
    for value in HOSTILE:
        for action in ("store", "retrieve", "query", "list", "delete", "info"):
            answer = tool.call({"action": action, **CALLS[action], name: value}, memory)
            assert json.loads(json.dumps(answer))["ok"] in (True, False)


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
NAMES = st.sampled_from([*tool.SCHEMA["properties"], "uid", "query", "meta", "other"])
ACTIONS = st.sampled_from([action for action in (*tool.ACTIONS, "get", "nope") if action != "evaluate"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, JSON), ACTIONS)
def test_whatever_a_model_sends_is_answered(memory: Memory, arguments: dict[str, Any], action: str) -> None:
    answer = tool.call({**arguments, "action": action}, memory)
    assert answer["ok"] is answer["success"]
    json.dumps(answer)


def test_a_closed_memory_is_answered(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.close()
    with pytest.raises(ClosedError):
        memory.status()
    with memoryd.scope(user="ada"):
        assert "closed" in error(memory, "list")
