"""Settings files of every shape: hooks go in once, others' stay, and all of ours go out again."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from memoryd.errors import ConfigError
from memoryd.hosts import parse_json
from memoryd_hooks._install_json import drop_hooks, has_hooks, put_hooks
from memoryd_hooks._install_toml import drop_tables, has_tables, put_tables

OURS = {"PreCompact": {"type": "command", "command": "'é \"x\"' \\ memoryd_hook.py", "timeout": 30}, "Stop": {"type": "command", "command": "memoryd_hook.py"}}
GROUPS = {event: {"hooks": [hook]} for event, hook in OURS.items()}
THEIRS = '[[hooks.PreCompact]]\n[[hooks.PreCompact.hooks]]\ntype = "command"\ncommand = "theirs"\n'
TOML = ["", "\n", "a = 1", "a = 1\n", "# only a comment\n\n", "a = 1\n\n\n", f"{THEIRS}\n[other]\nx = 1 # y\n", "[hooks]\nx = 1\n", 'a = """\n# memoryd: end\n"""\n', "a = 1\r\nb = 2\r\n"]


@pytest.mark.parametrize("text", TOML)
def test_codex_settings_go_back_to_the_byte(text: str) -> None:
    after = put_tables(text, OURS)
    assert after.startswith(text)
    assert has_tables(after)
    assert put_tables(after, OURS) == after
    found = tomllib.loads(after)["hooks"]
    for event, hook in OURS.items():
        assert found[event][-1]["hooks"] == [hook]
    assert drop_tables(after) == text
    assert drop_tables(text) == text


def test_codex_settings_that_were_written_to_after_it() -> None:
    after = put_tables("a = 1\n", OURS)
    assert drop_tables(after + "\n[later]\nb = 2\n") == "a = 1\n\n[later]\nb = 2\n"
    changed = put_tables(after, {"Stop": {"type": "command", "command": "memoryd_hook.py", "timeout": 5}})
    assert tomllib.loads(changed)["hooks"].keys() == {"Stop"}


def test_codex_settings_where_somebody_moved_our_tables() -> None:
    moved = "".join(line for line in put_tables(f"# mine\n{THEIRS}", OURS).splitlines(keepends=True) if not line.startswith("# memoryd"))
    assert has_tables(moved)
    assert put_tables(moved, OURS) == moved, "they do as well where they are"
    left = drop_tables(moved)
    assert not has_tables(left)
    assert left.startswith(f"# mine\n{THEIRS}")


@pytest.mark.parametrize("text", ['hooks = {Stop = []}\n', "hooks = 1\n", '[hooks]\nStop = "x"\n', "[hooks.Stop]\nx = 1\n"])
def test_codex_settings_that_cannot_be_added_to_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="'hooks' is written so that nothing can be added"):
        put_tables(text, OURS)


def test_codex_settings_that_are_no_toml_are_refused() -> None:
    with pytest.raises(ConfigError, match="is not valid TOML"):
        put_tables("a = = 1", OURS)


JSON: list[Any] = [
    {}, {"hooks": {}}, {"hooks": {"Stop": []}}, {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]}},
    {"hooks": {"Stop": [{"hooks": []}], "Odd": 5}}, {"hooks": {"Stop": [5, {"hooks": 5}, {}]}},
]  # fmt: skip


@pytest.mark.parametrize("settings", JSON)
def test_json_settings(settings: Any) -> None:
    text = json.dumps(settings, indent=2)
    after = put_hooks(text, GROUPS)
    assert put_hooks(after, GROUPS) == after
    assert has_hooks(after)
    kept = parse_json(drop_hooks(after))
    assert not has_hooks(drop_hooks(after))
    for event, groups in settings.get("hooks", {}).items():
        assert groups == [] or kept["hooks"][event] == groups
    assert drop_hooks(text) == text


def test_our_hook_beside_another_one_goes_alone() -> None:
    theirs = {"type": "command", "command": "theirs"}
    text = json.dumps({"hooks": {"Stop": [{"matcher": "x", "hooks": [theirs, OURS["Stop"], theirs]}]}}, indent=2)
    assert parse_json(drop_hooks(text)) == {"hooks": {"Stop": [{"matcher": "x", "hooks": [theirs, theirs]}]}}


def test_an_older_hook_of_ours_is_replaced_and_a_second_one_goes() -> None:
    old = {"hooks": [{"type": "command", "command": "/old/python /old/memoryd_hook.py"}]}
    text = json.dumps({"hooks": {"Stop": [old, old], "Gone": [old]}}, indent=2)
    assert parse_json(put_hooks(text, GROUPS)) == {"hooks": {event: [group] for event, group in GROUPS.items()}}


@pytest.mark.parametrize("text", ["[]", "5", '{"hooks": 5}', '{"hooks": {"Stop": {}}}'])
def test_json_settings_that_cannot_be_added_to_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected"):
        put_hooks(text, GROUPS)
