"""A value set in config.yaml changes that value, and no other byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import ConfigError
from memoryd_hermes._config_yaml import HostConfig, truthy

HERE = Path("config.yaml")

SETS = [
    ("", "memory:\n  provider: memoryd\n"),
    ("# mine\n", "# mine\nmemory:\n  provider: memoryd\n"),
    ("model: a", "model: a\nmemory:\n  provider: memoryd\n"),
    ("memory:\n  provider: ''   # none\n", "memory:\n  provider: memoryd   # none\n"),
    ('memory:\n    provider: "honcho"\n    x: 1\n', "memory:\n    provider: memoryd\n    x: 1\n"),
    ("memory:\n  provider:\n  x: 1\n", "memory:\n  provider: memoryd\n  x: 1\n"),
    ("memory:\n  provider: # none\n", "memory:\n  provider: memoryd # none\n"),
    ("memory:\n   # first\n   x: 1\n", "memory:\n   # first\n   provider: memoryd\n   x: 1\n"),
    ("memory: {x: 1} # flow\n", "memory: {provider: memoryd, x: 1} # flow\n"),
    ("memory: {provider: honcho, x: 1}\n", "memory: {provider: memoryd, x: 1}\n"),
    ("memory: {}\n", "memory: {provider: memoryd}\n"),
    ("memory: null\nx: 1\n", "memory: {provider: memoryd}\nx: 1\n"),
    ("memory:\nx: 1\n", "memory: {provider: memoryd}\nx: 1\n"),
    ("memory:\r\n  x: 1\r\n", "memory:\r\n  provider: memoryd\r\n  x: 1\r\n"),
    ("on: yes\nlong: |\n  a\n   b\nmemory:\n  provider: a\n", "on: yes\nlong: |\n  a\n   b\nmemory:\n  provider: memoryd\n"),
    ("memory:\n  provider: a\nx: &y 0755\nz: *y\n", "memory:\n  provider: memoryd\nx: &y 0755\nz: *y\n"),
    ("{}\n", "{memory: {provider: memoryd}}\n"),
    ("{model: a}\n", "{memory: {provider: memoryd}, model: a}\n"),
    ("memory: [a]\n", "memory: {provider: memoryd}\n"),
    ("memory:\n  provider: memoryd\n", "memory:\n  provider: memoryd\n"),
]


@pytest.mark.parametrize(("before", "after"), SETS)
def test_one_value_is_set(before: str, after: str) -> None:
    config = HostConfig(HERE, before)
    config.set("memory", "provider", "memoryd")
    assert config.text == after
    assert config.changed == (before != after)
    assert HostConfig(HERE, after).get("memory", "provider") == "memoryd"


def test_two_values_are_set() -> None:
    config = HostConfig(HERE, "compression: {enabled: true}\n")
    config.set("memory", "provider", "memoryd")
    config.set("compression", "checkpoint_required", True)
    assert config.text == "compression: {checkpoint_required: true, enabled: true}\nmemory:\n  provider: memoryd\n"
    config.set("memory", "provider", "")
    config.set("compression", "checkpoint_required", False)
    assert config.text == "compression: {checkpoint_required: false, enabled: true}\nmemory:\n  provider: ''\n"


@pytest.mark.parametrize("text", ["memory: &m {provider: a}\nother: *m\n", "base: &m {provider: a}\nmemory: *m\n", "x: 1\n...\n"])
def test_what_only_its_author_can_change_is_left(text: str) -> None:
    config = HostConfig(HERE, text)
    with pytest.raises(ConfigError, match="by hand"):
        config.set("memory", "provider", "memoryd")
    assert config.text == text


@pytest.mark.parametrize("text", ["a: [", "- a\n", "a: 'b\n", "\ta: 1", "a: 1\na: 2\n"])
def test_what_is_no_mapping_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="config.yaml"):
        HostConfig(HERE, text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert HostConfig.read(tmp_path).text == ""
    (tmp_path / "config.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        HostConfig.read(tmp_path)
    (tmp_path / "config.yaml").unlink()
    (tmp_path / "config.yaml").mkdir()
    with pytest.raises(ConfigError, match="directory"):
        HostConfig.read(tmp_path)


@pytest.mark.parametrize(("value", "wanted"), [(True, True), ("yes", True), ("True", True), (1, True), ("false", False), (None, False), (0, False)])
def test_a_switch_is_read_as_the_host_reads_it(value: object, wanted: bool) -> None:
    assert truthy(value) is wanted


KEYS = st.sampled_from(["memory", "compression", "x", "enabled", "provider", "list", "ä"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab é\n", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(values=st.dictionaries(KEYS, VALUES, max_size=4), flow=st.sampled_from([None, False, True]), indent=st.sampled_from([2, 4]))
def test_any_file_keeps_what_else_it_says(values: dict[str, object], flow: bool | None, indent: int) -> None:
    import io

    from ruamel.yaml import YAML

    writer, stream = YAML(typ="safe", pure=True), io.StringIO()
    writer.default_flow_style, writer.indent, writer.allow_unicode = flow, indent, True
    writer.dump(values, stream)
    config = HostConfig(HERE, stream.getvalue())
    values = config.values  # what was written may not read as it was meant
    try:
        config.set("memory", "provider", "memoryd")
    except ConfigError:
        section = values.get("memory")
        before = section.get("provider") if isinstance(section, dict) else section
        assert isinstance(before, list | dict | str)  # over several lines, where one word is expected
        return
    table = values.get("memory")
    wanted = {**values, "memory": {**(table if isinstance(table, dict) else {}), "provider": "memoryd"}}
    assert HostConfig(HERE, config.text).values == wanted
