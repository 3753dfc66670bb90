"""Editing JSON in place: what is not touched keeps every byte."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.errors import ConfigError
from memoryd.hosts import append_json, drop_json, parse_json, put_json

SPACE = st.sampled_from(["", "", " ", "\n", "\n  ", "\t", " /* a, {b} */ ", " // c: [\"d\"]\n", "\r\n"])
SCALARS = st.one_of(st.integers(-5, 5), st.booleans(), st.none(), st.text(max_size=5))
NAMES = st.one_of(st.sampled_from(["hooks", "Stop", "a"]), st.text(max_size=3))


@st.composite
def texts(draw: st.DrawFn, depth: int = 3) -> str:
    """A JSON value with comments, odd spaces and trailing commas."""
    kind = draw(st.sampled_from(["scalar", "object", "list"] if depth else ["scalar"]))
    if kind == "scalar":
        return json.dumps(draw(SCALARS), ensure_ascii=draw(st.booleans()))
    names = draw(st.lists(NAMES, max_size=3, unique=True)) if kind == "object" else draw(st.lists(st.none(), max_size=3))
    parts = [inside(draw, depth, name) for name in names]
    comma = draw(st.sampled_from(["", ","])) if parts else ""
    body = ",".join(parts) + comma + draw(SPACE)
    return f"{{{body}}}" if kind == "object" else f"[{body}]"


def inside(draw: st.DrawFn, depth: int, name: str | None) -> str:
    key = "" if name is None else json.dumps(name) + draw(SPACE) + ":"
    return draw(SPACE) + key + draw(SPACE) + draw(texts(depth - 1)) + draw(SPACE)


@st.composite
def settings_texts(draw: st.DrawFn) -> str:
    """An object, maybe with lists of hooks."""
    parts = [inside(draw, 2, name) for name in draw(st.lists(st.sampled_from(["a", "b", "é"]), max_size=2, unique=True))]
    if draw(st.booleans()):
        items = [draw(SPACE) + draw(texts(1)) + draw(SPACE) for _ in range(draw(st.integers(0, 3)))]
        parts.append(draw(SPACE) + f'"hooks":{draw(SPACE)}{{"Stop": [{",".join(items)}{draw(SPACE)}]}}' + draw(SPACE))
    return draw(SPACE) + "{" + ",".join(parts) + draw(SPACE) + "}" + draw(SPACE)


def written(text: str) -> str:
    """What somebody wrote: all but the space between."""
    return re.sub(r"\s+", "", text)


@settings(max_examples=60)
@given(settings_texts(), st.dictionaries(NAMES, SCALARS, max_size=2))
def test_an_item_goes_in_and_out_again(text: str, item: dict[str, Any]) -> None:
    before = parse_json(text)
    assert isinstance(before, dict)
    after = append_json(text, ("hooks", "Stop"), item)
    old = before.get("hooks", {}).get("Stop", [])
    assert parse_json(after) == {**before, "hooks": {"Stop": [*old, item]}}
    out = drop_json(after, ("hooks", "Stop", len(old)))
    assert parse_json(out) == {**before, "hooks": {"Stop": old}}
    back = drop_json(out, ("hooks",)) if "hooks" not in before else out
    assert written(back) == written(text), "nothing of what was there is lost, and nothing of ours stays"


@settings(max_examples=60)
@given(settings_texts(), st.sampled_from([("a",), ("é", "x"), ("hooks", "Start"), ("new", "one", "two")]), SCALARS)
def test_a_member_is_set(text: str, path: tuple[str, ...], value: Any) -> None:
    try:
        after = put_json(text, path, value)
    except ConfigError:
        assert not isinstance(parse_json(text).get(path[0]), dict), "only what is no object refuses"
        return
    found = parse_json(after)
    for name in path:
        found = found[name]
    assert found == value
    assert put_json(after, path, value) == after
    assert path[-1] not in _at(parse_json(drop_json(after, path)), path[:-1])


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value[name]
    return value


@settings(max_examples=60)
@given(texts())
def test_it_reads_what_json_reads(text: str) -> None:
    value = parse_json(text)
    plain = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda match: match[1] or " ", text, flags=re.DOTALL)
    plain = re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', lambda match: match[1] or "", plain)
    assert value == json.loads(plain)


@pytest.mark.parametrize(
    "text",
    ["{", "[1", '{"a"}', '{"a":}', "{a: 1}", '{"a": 1} x', '{"a": 1]', '{"a": "b\n"}', "[1 2]", "[,]", "{,}", "nope", '"\\x"', "[" * 5000, '{"a": 1, /* }'],
)
def test_what_is_no_json_is_refused_and_names_its_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^line \d+: is not valid JSON$"):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "h": {\n    "s": [\n      1\n    ]\n  }\n}\n'),
        ("{}", '{\n  "h": {\n    "s": [\n      1\n    ]\n  }\n}'),
        ('{\n\t"a": 1 // note\n}\n', '{\n\t"a": 1, // note\n\t"h": {\n\t\t"s": [\n\t\t\t1\n\t\t]\n\t}\n}\n'),
        ('{\r\n  "a": 1\r\n}', '{\r\n  "a": 1,\r\n  "h": {\r\n    "s": [\r\n      1\r\n    ]\r\n  }\r\n}'),
        ('{"a": 1}', '{"a": 1, "h": {"s": [1]}}'),
        ('{\n  "h": {"s": [0,]},\n}', '{\n  "h": {"s": [0, 1,]},\n}'),
    ],
)
def test_it_writes_as_the_file_is_written(text: str, expected: str) -> None:
    assert append_json(text, ("h", "s"), 1) == expected


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        ('{"b": 0, // c\n"a": 0}', ("a",), '{"b": 0 // c\n}'),
        ('[ // c\n1]', (0,), "[ // c\n]"),
        ('[0, // "x\n1, 2]', (1,), '[0, // "x\n 2]'),
        ('["//", 1]', (1,), '["//"]'),
    ],
)
def test_a_comment_to_the_end_of_its_line_swallows_nothing(text: str, path: tuple[str | int, ...], left: str) -> None:
    assert drop_json(text, path) == left
    parse_json(left)


def test_what_is_in_the_way_is_named() -> None:
    with pytest.raises(ConfigError, match=r"hooks\.Stop: expected a list"):
        append_json('{"hooks": {"Stop": {}}}', ("hooks", "Stop"), 1)
    with pytest.raises(ConfigError, match="expected an object"):
        put_json("[]", ("a",), 1)
