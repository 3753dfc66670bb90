"""``memoryd tool``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run


def ask(memoryd: Run, *options: str, code: int = 0, **call: Any) -> Any:
    done = memoryd("tool", *options, stdin=json.dumps(call))
    assert (done.code, done.err) == (code, "")
    assert done.json["success"] is done.json["ok"] is (code == 0)
    return done.json


def test_a_call_from_standard_input(memoryd: Run) -> None:
    assert ask(memoryd, action="store", key="city", value="Oslo") == {"success": True, "ok": True, "key": "city"}
    assert memoryd("get", "city").out == "Oslo\n"
    assert ask(memoryd, action="retrieve", key="city")["value"] == "Oslo"
    assert ask(memoryd, action="get", key="zebra", code=1)["error"] == "No memory found for key 'zebra'."


def test_a_call_from_a_file(memoryd: Run, tmp_path: Path) -> None:
    (tmp_path / "call.json").write_text('{"action": "info"}')
    done = memoryd("tool", str(tmp_path / "call.json"))
    assert (done.code, done.json["backend"]) == (0, "local")
    missing = memoryd("tool", str(tmp_path / "nope.json"))
    assert (missing.code, missing.stdout) == (1, b"")


def test_whose_memory_it_is(memoryd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(memoryd, action="store", user_id="bob", key="city", value="Bergen")
    assert ask(memoryd, action="list")["count"] == 0
    assert ask(memoryd, "--user", "bob", action="list")["keys"] == ["city"]
    assert "tool.cross_user" in ask(memoryd, "--user", "ada", action="list", user_id="bob", code=1)["error"]
    monkeypatch.setenv("MEMORYD_USER", "ada")
    assert "tool.cross_user" in ask(memoryd, action="list", user_id="bob", code=1)["error"]
    monkeypatch.setenv("MEMORYD_TOOL_CROSS_USER", "true")
    assert ask(memoryd, action="list", user_id="bob")["keys"] == ["city"]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"action": "store", "key": "a\\u0000", "value": "\\ud800"}', "\xff", "{}"])
def test_any_input_is_answered_as_json(memoryd: Run, text: str) -> None:
    done = memoryd("tool", stdin=text.encode("latin-1"))
    assert done.err == ""
    assert done.code == (0 if done.json["success"] else 1)
