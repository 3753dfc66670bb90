"""Every event survives the way through a JSON line, exactly; what is no event is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd.core import Deletion, Edit, Erased, Event, Forget, MemoryWrite, Scope, SessionMark, Turn
from memoryd.errors import InvalidInput
from memoryd.runtime._portable import Portable, event_of, portable_event, portable_line

ANY = st.characters(exclude_categories=())  # lone surrogates, NUL and line breaks included
TEXT = st.text(ANY, max_size=30)
NAME = st.text(ANY, min_size=1, max_size=20)
MAYBE = st.none() | TEXT
ID = st.binary(min_size=16, max_size=16)
AT = st.integers(0, 253_402_300_799_999_999)
SCOPE = st.builds(Scope, user=NAME, session=NAME, agent=st.none() | NAME, workspace=st.none() | NAME, platform=st.none() | NAME)
# what JSON text can hold: two surrogates that stand side by side are one character in it, also in the log's own
PLAIN = st.text(st.characters(exclude_categories=("Cs",)), max_size=10)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(PLAIN, JSON, max_size=3)
NAMES = st.lists(NAME, max_size=3).map(tuple)
EVENT: st.SearchStrategy[Event] = st.one_of(
    st.builds(Turn, ID, SCOPE, AT, TEXT, TEXT, st.none() | NAME, NAMES, NAMES),
    st.builds(MemoryWrite, ID, SCOPE, AT, NAME, TEXT, NAME, OBJECT),
    st.builds(Deletion, ID, SCOPE, AT, NAME),
    st.builds(Edit, ID, SCOPE, AT, ID, MAYBE, MAYBE),
    st.builds(Forget, ID, SCOPE, AT, st.just(()), NAMES),
    st.builds(SessionMark, ID, SCOPE, AT, NAME, OBJECT),
    st.builds(Erased, ID, AT),
)


@settings(max_examples=300, deadline=None)
@given(EVENT, st.lists(ID, max_size=3).map(tuple))
def test_it_comes_back_as_it_was(event: Event, targets: tuple[bytes, ...]) -> None:
    found = Portable(event, targets if isinstance(event, Forget) else ())
    line = portable_line(portable_event(found))
    assert line.count(b"\n") == 1
    assert event_of(json.loads(line)) == found


def test_a_metadata_text_with_a_lone_surrogate() -> None:
    found = Portable(MemoryWrite(bytes(16), Scope(user="ü"), 0, "k", "ü", "t", {"a": "\udc00"}))
    line = portable_line(portable_event(found))
    assert event_of(json.loads(line.decode("utf-8"))) == found


TURN = portable_event(Portable(Turn(bytes(16), Scope(user="ada", session="s"), 0, "a", "b")))


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ([], "event: expected an object"),
        ({}, "kind: is missing"),
        ({**TURN, "kind": "poem"}, "kind: expected one of turn, memory"),
        ({**TURN, "kind": 3}, "kind: expected text"),
        ({**TURN, "id": "00"}, "id: expected 32 hexadecimal digits"),
        ({**TURN, "at": "soon"}, "at: expected ISO 8601"),
        ({**TURN, "scope": {"who": "ada"}}, "scope: expected an object"),
        ({**TURN, "scope": {"user": ""}}, "user: must not be empty"),
        ({**TURN, "user": 5}, "user: expected text"),
        ({**TURN, "user": {"base64": "?"}}, "user: expected text"),
        ({**TURN, "user": {"base64": "", "x": 1}}, "user: expected text"),
        ({**TURN, "parts": "image"}, "parts: expected a list"),
        ({**TURN, "later": 1}, "later: unknown key"),
        ({key: value for key, value in TURN.items() if key != "assistant"}, "assistant: is missing"),
        ({"kind": "memory", "id": "00" * 16, "at": TURN["at"], "scope": {}, "key": "k", "value": "v", "type": "t", "metadata": [1]}, "metadata"),
    ],
)
def test_what_is_no_event_is_named(row: object, problem: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        event_of(row)
    assert str(raised.value).startswith(problem)
