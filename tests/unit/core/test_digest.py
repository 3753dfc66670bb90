"""Canonical bytes are strict and one-to-one; digests depend on key, purpose and where the parts end."""

from __future__ import annotations

import json
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.core import canonical_bytes, digester, keyed

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@given(json_values)
def test_any_json_value_comes_back(value: Any) -> None:
    assert json.loads(canonical_bytes(value)) == value


@given(st.dictionaries(st.text(), st.integers()))
def test_the_order_of_keys_does_not_count(value: dict[str, int]) -> None:
    assert canonical_bytes(dict(reversed(value.items()))) == canonical_bytes(value)


def test_the_form_is_fixed() -> None:
    value = {"b": [1, 2.5, None, True], "a": "ä\u2028\x7f\n\x00", "c": {}}
    assert canonical_bytes(value) == b'{"a":"\xc3\xa4\xe2\x80\xa8\x7f\\n\\u0000","b":[1,2.5,null,true],"c":{}}'


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800", "\\ud800"])
def test_lone_surrogates_are_written_as_escapes_and_come_back(text: str) -> None:
    assert json.loads(canonical_bytes({"t": text})) == {"t": text}


def test_a_text_that_looks_like_an_escape_is_another_one() -> None:
    assert canonical_bytes("\ud800") != canonical_bytes("\\ud800")


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), {1: "a"}, {None: 1}, {"a": {2: 3}}, [{(1,): 2}], {1, 2}, b"bytes", object(), {"a": 1j}, {"a": 1, 2: 3}],
)
def test_what_is_not_json_raises(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        canonical_bytes(value)


def test_circles_and_endless_depth_raise_value_error() -> None:
    circle: list[Any] = []
    circle.append(circle)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (circle, {"a": circle}, deep):
        with pytest.raises(ValueError, match="deeply"):
            canonical_bytes(value)


def test_a_hundred_levels_and_tuples_and_subclasses_are_fine() -> None:
    deep: Any = "end"
    for _ in range(100):
        deep = {"a": [deep]}
    assert json.loads(canonical_bytes(deep)) == deep
    assert canonical_bytes((1, IntEnum("E", "A").A)) == b"[1,1]"


def test_a_digest_depends_on_everything() -> None:
    base = keyed(b"key", "purpose", b"ab", b"c")
    others = [
        keyed(b"KEY", "purpose", b"ab", b"c"), keyed(b"key", "another", b"ab", b"c"), keyed(b"key", "purpose", b"a", b"bc"),
        keyed(b"key", "purpose", b"abc"), keyed(b"key", "purpose", b"ab", b"c", b""),
    ]  # fmt: skip
    assert len(base) == 32
    assert len({base, *others}) == 6


def test_a_digester_is_the_same_function_and_keeps_no_state() -> None:
    digest = digester(b"key", "purpose")
    assert digest(b"x") == digest(b"x") == keyed(b"key", "purpose", b"x")
