"""Every value comes back as it was."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from pathlib import PurePosixPath
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd import core
from memoryd.client._records import make_plain
from memoryd.core import (
    Accepted,
    BackendInfo,
    BackendStatus,
    GateStatus,
    Hit,
    Memory,
    Recall,
    Receipt,
    Restored,
    Status,
    raw_row,
)
from memoryd.errors import InvalidInput, ProtocolError
from memoryd.wire import TAGS, make_record, pack, unpack
from memoryd.wire._values import pack_rows

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=12)  # half surrogate pairs too
TIMES = st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-5, minutes=-30))]))
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | ANY_TEXT | st.binary(max_size=12) | TIMES
    | st.frozensets(ANY_TEXT, max_size=3) | ANY_TEXT.map(lambda text: PurePosixPath(text.replace("\0", "0")))
)  # fmt: skip
KEYS = ANY_TEXT | st.integers() | st.sampled_from(sorted(TAGS)) | st.just("$")
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=12,
)
CODECS = {
    "msgspec": (msgspec.json.encode, msgspec.json.decode),
    "json": (lambda data: json.dumps(data, ensure_ascii=False, allow_nan=False).encode(), json.loads),
}


def there_and_back(value: Any, codec: str = "msgspec") -> Any:
    dump, load = CODECS[codec]
    return unpack(load(dump(pack(value))), make_record)


@given(VALUES, st.sampled_from(sorted(CODECS)))
def test_any_value(value: Any, codec: str) -> None:
    assert exact(there_and_back(value, codec)) == exact(value)


def exact(value: Any) -> Any:
    """1 and 1.0 and True are equal, and a list is no tuple: compare the types too."""
    if isinstance(value, dict):
        return [(exact(key), exact(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [exact(item) for item in value]
    if isinstance(value, float):
        return "float", repr(value)
    kind = PurePosixPath if isinstance(value, PurePosixPath) else type(value)
    return kind.__name__, value, getattr(value, "tzinfo", None) is None


def test_what_is_no_number() -> None:
    assert math.isnan(there_and_back(math.nan))
    assert [there_and_back(math.inf), there_and_back(-math.inf)] == [math.inf, -math.inf]


NOW = datetime(2026, 11, 29, 12, 0, 0, 123456, tzinfo=UTC)
HIT = Hit("ab", "turn", "half \ud83d and \udc00", 0.25, NOW, "local:turn", 7, None, "s", labels={"$agent": "x"}, why={"idf": 1.5})
RECORDS: list[core.Value] = [
    Accepted("journaled", 3, "00" * 16),
    core.Stored(Accepted("held", None, "00" * 16, "locked"), applied=False),
    Memory("m", "k", "v", "ada", metadata={"list": [1, {"$time": "no"}], "deep": {"a": None}}, updated_at=NOW),
    core.MemoryVersion("e", "k", "v", "t", NOW, None, {"a": 1}),
    HIT,
    Recall((HIT, HIT), behind=2, stale=True, source="honcho"),
    core.Context("q", "text", (HIT,), "local", complete=False),
    core.Drained(local=True, remote=False),
    core.Forgotten(1, 2, 3, ("warning",)),
    core.CheckpointInfo("id", "ada", "s", 4, (Receipt("id", 1, "archived", "s", at=NOW),)),
    Restored("id", 1, (b'{"a":1}', None, b"\xff\x00"), 1, b"raw\n"),
    core.Verification(1, 2, 3, ("bad",)),
    BackendInfo("local", "local (SQLite)", False, "here", False, frozenset({"turns", "recall"})),
    Status(
        "ok", "p", "/h", "/h/p", None, (BackendStatus("local", "l", "primary", "ok", rows={"turns": 3}),),
        GateStatus("block", "/a", receipts=({"a": [1]},)), notes=("n",), queues={"sync": 0},
    ),
]  # fmt: skip


@pytest.mark.parametrize("value", RECORDS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("codec", sorted(CODECS))
def test_every_record(value: core.Value, codec: str) -> None:
    again = there_and_back(value, codec)
    assert again == value
    assert [type(getattr(again, name)) for name in names(value)] == [type(getattr(value, name)) for name in names(value)]


def names(value: core.Value) -> list[str]:
    return [field.name for field in attrs.fields(type(value))]


def test_a_field_of_a_newer_version_is_left_out_and_a_missing_one_is_an_error() -> None:
    assert unpack({"$": "Accepted", "state": "off", "mood": 1}, make_record) == Accepted("off")
    with pytest.raises(ProtocolError, match="Accepted"):
        unpack({"$": "Accepted"}, make_record)
    with pytest.raises(ProtocolError, match="does not know"):
        unpack({"$": "open_door"}, make_record)


class Strange:
    def __repr__(self) -> str:
        return "<strange \ud800>"


class Broken:
    def __repr__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize("row", ["text", b"\xff", 7, None, Strange(), (1, 2), [1], {"a": Strange()}, {"a": math.nan}, {1: 2}, {"x": {"$": 1}}])
def test_a_row_of_a_transcript_is_kept_as_it_would_be_here(row: object) -> None:
    [again] = unpack(msgspec.json.decode(msgspec.json.encode(pack_rows([row]))), make_record)
    if isinstance(row, dict) and any(isinstance(item, Strange) for item in row.values()):
        assert raw_row(again)[1] and raw_row(row)[1]
    else:
        assert raw_row(again) == raw_row(row)


def test_a_row_that_cannot_be_written_is_one_odd_row() -> None:
    circle: list[Any] = []
    circle.append(circle)
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    rows = unpack(msgspec.json.decode(msgspec.json.encode(pack_rows([circle, {"a": circle}, deep, Broken(), {"role": "user"}]))), make_record)
    assert [type(row).__name__ for row in rows] == ["list", "dict", "list", "Broken", "dict"]
    assert rows[-1] == {"role": "user"}
    with pytest.raises(InvalidInput, match="nested"):
        pack(circle)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*TAGS, "state", "a"]), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_any_json_is_a_value_or_a_protocol_error(data: Any) -> None:
    try:
        unpack(data, make_record)
    except ProtocolError:
        pass


@given(st.sampled_from(sorted(TAGS)), JSON)
def test_a_tag_that_holds_something_else_is_a_protocol_error(tag: str, data: Any) -> None:
    try:
        unpack({tag: data}, make_record)
    except ProtocolError:
        pass


def test_a_result_of_the_blocking_client_can_be_given_back() -> None:
    plain = make_plain("Accepted", {"state": "held", "seq": None, "event_id": "0" * 32, "reason": "locked"})
    assert unpack(pack(plain), make_record) == Accepted("held", None, "0" * 32, "locked")
