"""The evidence rules, each with the rows that it is about; nothing that a host sends is ever an error."""

from __future__ import annotations

import copy
import json
from collections import OrderedDict, UserDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.core import Evidence, evidence_of, identity_of, raw_row, readable

KEY = b"k" * 32


def identity(row: object) -> bytes | None:
    evidence = evidence_of(row)
    return identity_of(KEY, evidence) if evidence is not None else None


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_what_user_and_assistant_say_is_evidence(role: str) -> None:
    assert evidence_of({"role": role, "content": "hello"}) == Evidence(role, "hello")


@pytest.mark.parametrize("role", ["system", "developer", "tool", "function", "USER", "", None, 7, ["user"], {}])
def test_other_roles_are_not(role: object) -> None:
    assert evidence_of({"role": role, "content": "hello"}) is None


def test_prose_beside_tool_calls_is_kept_and_the_calls_are_not() -> None:
    row = {"role": "assistant", "content": "let me look", "tool_calls": [{"id": "1", "function": {"name": "ls", "arguments": "{}"}}]}
    assert identity(row) == identity({"role": "assistant", "content": "let me look"})
    assert evidence_of({**row, "content": None}) is None


@pytest.mark.parametrize(
    "mark",
    [
        {"is_summary": True}, {"isSummary": 1}, {"isCompactSummary": True}, {"isMeta": True}, {"_compressed_summary": 1},
        {"summary": True}, {"metadata": {"compaction_output": True}}, {"metadata": {"summary": True}},
        {"additional_kwargs": {"lc_source": "summarization"}}, {"isVisibleInTranscriptOnly": True},
    ],
)  # fmt: skip
def test_rows_that_the_host_marks_as_a_summary_are_dropped(mark: dict[str, Any]) -> None:
    assert evidence_of({"role": "user", "content": "so far ...", **mark}) is None


@pytest.mark.parametrize(
    "mark", [{"is_summary": False}, {"summary": "the user's own word"}, {"summary": 0}, {"metadata": None}, {"metadata": {"a": 1}}]
)
def test_rows_that_are_not_marked_stay(mark: dict[str, Any]) -> None:
    assert evidence_of({"role": "user", "content": "hello", **mark}) == Evidence("user", "hello")


@pytest.mark.parametrize(
    "text",
    [
        "[CONTEXT COMPACTION - REFERENCE ONLY] Summary generation was unavailable.",
        "This session is being continued from a previous conversation that ran out of context.",
        "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
    ],
)
def test_the_host_s_placeholder_is_nobody_s_speech(text: str) -> None:
    assert evidence_of({"role": "user", "content": text}) is None
    assert evidence_of({"role": "assistant", "content": [{"type": "text", "text": text}]}) is None


def test_parts_are_joined_and_only_text_counts() -> None:
    parts = [
        {"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_text", "text": "two"}, {"type": "output_text", "text": "three"}, "four", {"type": "thinking", "thinking": "no"},
        {"type": "tool_result", "content": "no"}, {"type": "text"}, {"type": "text", "text": 5}, None, 6, {"text": "five"},
    ]  # fmt: skip
    assert evidence_of({"role": "user", "content": parts}) == Evidence("user", "one\ntwo\nthree\nfour\nfive")


@pytest.mark.parametrize(
    "content", [None, "", "  \n\t", [], {}, 7, [{"type": "image_url", "image_url": {"url": "data:,"}}], [[["deep"]]], [None]]
)
def test_rows_without_text_are_no_evidence_and_no_error(content: object) -> None:
    assert evidence_of({"role": "user", "content": content}) is None
    assert evidence_of({"role": "user"}) is None


@pytest.mark.parametrize("row", [None, 1, "text", [], [{"role": "user"}], object(), b"x"])
def test_what_is_no_mapping_is_no_evidence(row: object) -> None:
    assert evidence_of(row) is None


def test_keys_that_the_host_adds_and_the_way_of_writing_do_not_count() -> None:
    plain = identity({"role": "user", "content": "café\nau lait"})
    assert identity({"role": "user", "content": " cafe\u0301\r\nau lait\n", "_row_id": 5, "message_uid": None}) == plain
    assert identity({"role": "user", "content": [{"type": "text", "text": "café\rau lait"}], "timestamp": 1.5}) == plain
    assert identity({"role": "assistant", "content": "café\nau lait"}) != plain
    assert identity({"role": "user", "content": "CAFÉ\nau lait"}) != plain


def test_nul_and_lone_surrogates_are_text() -> None:
    assert len({identity({"role": "user", "content": text}) for text in ("a", "a\x00", "a\ud800", "a\udfff", "\x00a")}) == 5


def test_the_host_s_rows_are_not_changed() -> None:
    row = {"role": "user", "content": [{"type": "text", "text": " a\r\n"}], "b": {"z": 1, "a": 2}}
    before = copy.deepcopy(row)
    evidence_of(row)
    raw_row(row)
    assert row == before
    assert list(row["b"]) == ["z", "a"]  # type: ignore[call-overload]


def test_a_mapping_is_kept_as_canonical_json() -> None:
    row = {"role": "user", "content": "a"}
    for mapping in (row, OrderedDict(row), MappingProxyType(row), UserDict(row)):
        assert raw_row(mapping) == (b'{"content":"a","role":"user"}', False)


class _Angry:
    def __repr__(self) -> str:
        raise ZeroDivisionError


class _AngryMapping(UserDict[str, str]):
    def __iter__(self) -> Any:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("half a li", "half a li"), ("\ud800\x00", "\ud800\x00"), (b"caf\xc3\xa9", "café"), (b"\xff", "\\xff"), (7, "7"), (None, "None"),
        ([1, "a"], "[1, 'a']"), ({"a": {1, 2}}, "{'a': {1, 2}}"), ({"a": float("nan")}, "{'a': nan}"), ({1: 2}, "{1: 2}"),
        (_Angry(), "<_Angry: repr raised ZeroDivisionError>"),
    ],
)  # fmt: skip
def test_an_odd_row_is_kept_as_its_readable_text(row: object, text: str) -> None:
    data, degraded = raw_row(row)
    assert degraded
    assert json.loads(data) == text == readable(row)


def test_an_endless_repr_is_bounded_but_text_is_not() -> None:
    assert len(readable(list(range(1_000_000)))) < 1_100_000
    assert len(readable("x" * 10_000_000)) == 10_000_000


def test_no_mapping_can_refuse() -> None:
    assert raw_row(_AngryMapping(a="b"))[1]


def test_the_text_is_not_in_a_repr() -> None:
    assert "secret" not in repr(evidence_of({"role": "user", "content": "secret"}))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=5) | st.integers(), children, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["role", "content", "summary", "metadata", "isMeta", "x"]), anything) | anything)
def test_nothing_is_an_error(row: object) -> None:
    data, degraded = raw_row(row)
    json.loads(data)
    if not degraded:
        evidence = evidence_of(row)
        assert evidence is None or evidence.text == evidence.text.strip() != ""
