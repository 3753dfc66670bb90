"""Events round-trip through the codec whatever text they hold, and bad values name their field."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.core import (
    Deletion,
    Edit,
    Erased,
    Event,
    Forget,
    MemoryWrite,
    Scope,
    SessionMark,
    Turn,
    checked_metadata,
    decode_event,
    encode_event,
    kind_of,
    new_event_id,
)
from memoryd.errors import InvalidInput, StoreCorrupt, StoreTooNew

ANY_TEXT = st.text(st.characters(codec=None))  # lone surrogates and NUL included
NAMES = ANY_TEXT.filter(bool)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
SCOPES = st.builds(Scope, profile=st.none(), user=NAMES, session=st.none() | NAMES, agent=st.none() | NAMES)
IDS = st.binary(min_size=16, max_size=16)
TIMES = st.integers(0, 2**62)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        Turn, IDS, SCOPES, TIMES, ANY_TEXT, ANY_TEXT, st.none() | NAMES, st.tuples(ANY_TEXT), st.tuples(ANY_TEXT, ANY_TEXT)
    ),
    st.builds(MemoryWrite, IDS, SCOPES, TIMES, NAMES, ANY_TEXT, NAMES, st.dictionaries(ANY_TEXT, JSON, max_size=4)),
    st.builds(Deletion, IDS, SCOPES, TIMES, NAMES),
    st.builds(Edit, IDS, SCOPES, TIMES, IDS, st.none() | ANY_TEXT, st.none() | ANY_TEXT),
    st.builds(Forget, IDS, SCOPES, TIMES, st.lists(st.integers(0, 2**40)).map(tuple), st.lists(NAMES).map(tuple)),
    st.builds(SessionMark, IDS, SCOPES, TIMES, NAMES, st.dictionaries(ANY_TEXT, JSON, max_size=4)),
)


@given(EVENTS)
def test_every_event_comes_back_as_it_was(event: Event) -> None:
    assert decode_event(event.event_id, event.at, kind_of(event), encode_event(event)) == event


@given(EVENTS, st.integers(0, 2**16), st.integers(0, 255), st.integers(0, 7))
def test_a_damaged_payload_is_an_event_or_a_store_error(event: Event, place: int, byte: int, kind: int) -> None:
    payload = bytearray(encode_event(event))
    payload[place % len(payload)] = byte
    with suppress(StoreCorrupt, StoreTooNew):
        assert decode_event(event.event_id, event.at, kind, bytes(payload)) is not None


@given(EVENTS)
def test_no_text_of_an_event_is_in_its_repr(event: Event) -> None:
    secret = "vertraulich-4711"
    match event:
        case Turn():
            marked: Event = Turn(event.event_id, Scope(user="u"), 0, secret, secret)
        case MemoryWrite():
            marked = MemoryWrite(event.event_id, Scope(user="u"), 0, "k", secret, metadata={"m": secret})
        case _:
            return
    assert secret not in repr(marked)


def test_an_erased_payload_leaves_the_place() -> None:
    event_id = new_event_id()
    assert decode_event(event_id, 7, 1, None) == Erased(event_id, 7)
    assert encode_event(Erased(event_id, 7)) == b""


@pytest.mark.parametrize("payload", [b"\xc1", b"\x00", b"garbage", b"\x93\x01\xa1a"])
def test_bytes_that_are_no_payload_are_corrupt(payload: bytes) -> None:
    with pytest.raises(StoreCorrupt):
        decode_event(new_event_id(), 0, 1, payload)


def test_a_newer_payload_asks_for_an_upgrade() -> None:
    event = Turn(new_event_id(), Scope(user="u", session="s"), 0, "a", "b")
    payload = encode_event(event)
    with pytest.raises(StoreTooNew):
        decode_event(event.event_id, 0, 1, payload.replace(b"\x01", b"\x63", 1))
    with pytest.raises(StoreTooNew):
        decode_event(event.event_id, 0, 99, payload)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": math.nan}, "metadata.a"),
        ({"a": [1, math.inf]}, "metadata.a[1]"),
        ({1: "x"}, "metadata"),
        ({"a": {"b": object()}}, "metadata.a.b"),
        ({"a": b"bytes"}, "metadata.a"),
        ([1], "metadata"),
        ("text", "metadata"),
    ],
)
def test_metadata_that_json_cannot_hold_names_the_place(value: object, where: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        checked_metadata(value)
    assert caught.value.field == where


def test_metadata_a_hundred_levels_deep_is_refused() -> None:
    value: dict[str, object] = {}
    for _ in range(100):
        value = {"deeper": value}
    with pytest.raises(InvalidInput, match="nested"):
        checked_metadata(value)


def test_metadata_is_a_copy() -> None:
    mine = {"a": [1]}
    event = MemoryWrite(new_event_id(), Scope(user="u"), 0, "k", "v", metadata=mine)
    mine["a"].append(2)
    assert event.metadata == {"a": [1]}


@pytest.mark.parametrize("name", ["", "x" * 501, 7, b"bytes"])
def test_a_name_that_is_none_is_refused_by_field(name: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Scope(user=name)  # type: ignore[arg-type]  # wrong on purpose
    assert caught.value.field == "user"


@pytest.mark.parametrize("name", ["../x", "*", "\0", "\ud800", "x" * 500, "שלום", "a.b", "a-b", "👩‍👩‍👧"])
def test_any_other_text_is_a_name(name: str) -> None:
    assert Scope(user=name).user == name
