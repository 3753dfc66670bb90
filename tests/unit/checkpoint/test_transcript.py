"""Transcript files as hosts leave them: whole, cut, odd, empty, missing."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.checkpoint import read_source, read_transcript
from memoryd.errors import InvalidInput

A, B = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b\u2028ä"}
ARRAY = json.dumps([A, B]).encode()
LINES = b"\n".join(json.dumps(row).encode() for row in (A, B)) + b"\n"


@pytest.mark.parametrize(
    "source",
    [
        ARRAY, LINES, LINES.rstrip(), LINES.replace(b"\n", b"\r\n"), b"\n\n" + LINES + b"\n \n", json.dumps([A, B], indent=2).encode(),
        b"\xef\xbb\xbf" + ARRAY, b"\xef\xbb\xbf" + LINES, b"\xff\xfe" + ARRAY.decode().encode("utf-16-le"),
        json.dumps({"messages": [A, B]}, indent=1).encode(), json.dumps([A, B], ensure_ascii=False).encode(),
        b"\n".join(json.dumps(row, ensure_ascii=False).encode() for row in (A, B)), b"  " + ARRAY + b"\n",
    ],
)  # fmt: skip
def test_an_array_an_object_and_lines(source: bytes, tmp_path: Path) -> None:
    assert read_transcript(source) == [A, B]
    path = tmp_path / "t"
    path.write_bytes(source)
    assert read_transcript(path) == read_transcript(str(path)) == [A, B]
    assert read_source(path) == source


def test_an_empty_array_has_nothing_to_archive_and_one_object_is_one_row() -> None:
    assert read_transcript(b"[]") == read_transcript(b" [ ]\n") == []
    assert read_transcript(json.dumps(A).encode()) == [A]


def test_bad_lines_and_a_half_last_one_are_kept_as_their_text() -> None:
    source = LINES + b'not json\n{"role":"user","content":NaN}\n[1]\n7\n\xff\xfe\n{"role":"user","con'
    assert read_transcript(source) == [A, B, "not json", '{"role":"user","content":NaN}', [1], 7, "\\xff\\xfe", '{"role":"user","con']


@pytest.mark.parametrize("cut", range(1, len(ARRAY)))
def test_an_array_cut_anywhere_keeps_what_is_whole(cut: int) -> None:
    whole = ARRAY[:cut].count(b"}")
    if not whole:
        with pytest.raises(InvalidInput, match="readable row|empty"):
            read_transcript(ARRAY[:cut])
        return
    rows = read_transcript(ARRAY[:cut])
    assert rows[:whole] == [A, B][:whole]
    assert all(isinstance(row, str) for row in rows[whole:])


@pytest.mark.parametrize("cut", range(1, len(LINES)))
def test_lines_cut_anywhere_keep_what_is_whole(cut: int) -> None:
    whole = LINES[:cut].count(b"}")
    if whole:
        assert read_transcript(LINES[:cut])[:whole] == [A, B][:whole]
    else:
        with pytest.raises(InvalidInput, match="readable row"):
            read_transcript(LINES[:cut])


@pytest.mark.parametrize("source", [b"", b" \n\r\n\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_an_empty_file_says_so(source: bytes) -> None:
    with pytest.raises(InvalidInput, match="is empty"):
        read_transcript(source)


@pytest.mark.parametrize("source", [b"hello", b"[1, 2]", b'"text"', b"7\n8\n", b"\x00" * 100, b"[" * 5000, b'["a"]\n["b"]', b"\xff" * 9])
def test_a_file_without_a_readable_row_says_so(source: bytes) -> None:
    with pytest.raises(InvalidInput, match="no readable row"):
        read_transcript(source)


@pytest.mark.parametrize("path", ["", None, 5, "a\x00b"])
def test_no_path_is_an_error_that_names_the_field(path: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_source(path)
    assert caught.value.field == "transcript"


def test_a_directory_and_a_deleted_file_are_errors_and_no_other_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_bytes(LINES)
    for path in (tmp_path, tmp_path / "deleted.jsonl", tmp_path / "other.jsonl" / "x"):
        with pytest.raises(InvalidInput, match="cannot be read"):
            read_transcript(path)


def test_deep_nesting_and_long_numbers_are_kept_as_text() -> None:
    deep = b'{"role":"user","content":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    number = b'{"role":"user","n":' + b"1" * 10_000 + b"}"
    assert read_transcript(LINES + deep + b"\n" + number) == [A, B, deep.decode(), number.decode()]


ODD = (
    '{"role":"user","content":NaN}', '{"role":"user","logprob":-Infinity,"say":"a ] } , \\" b"}', "{'role': 'user', 'content': None}",
    '{"role":"user",}', '{"role":"user","content":' + "[" * 5000 + "]" * 5000 + "}", "NaN", "undefined",
)  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("place", range(3))
def test_an_odd_row_of_an_array_is_one_row_of_text_wherever_it_stands(odd: str, place: int) -> None:
    rows = [json.dumps(A), json.dumps(B)]
    rows.insert(place, odd)
    for between in (",", ", ", " ,\n  "):
        expected: list[object] = [A, B]
        expected.insert(place, odd)
        assert read_transcript(("[" + between.join(rows) + " ]\n").encode()) == expected


@given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_a_typed_error(source: bytes) -> None:
    with suppress(InvalidInput):
        assert isinstance(read_transcript(source), list)
