"""No text breaks a query, an insert or the index; no text is ever syntax."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.core import Query
from tests.adapters.local.conftest import Local, backend_in

OPERATORS = (
    "foo-bar", "D1:3", "speaker:bob", "body:ada", "a AND", "OR", "NOT x", "NEAR(a b, 2)", "^start", "pre*", "*", "+", "-x", '"', '""', '"""',
    "'", "(", ")", "(" * 300, "{a b}:c", "rank", "fts", "rowid:1", "a\x00b", "\ud83d query", ";--", "%", "_", "\\", "$(x)", "a" * 10_000,
    '"unbalanced', "“curly quotes here”", "x " * 5_000, "AND OR NOT NEAR", '" OR "', 'a" OR body:"b', "é" * 5000, "字" * 5000, "ก" * 5000,
)


@pytest.mark.parametrize("text", OPERATORS)
async def test_operators_are_words(local: Local, text: str) -> None:
    await local.turn("plain words only", text)
    await local.recall(text)
    assert await local.found("plain words") == ["plain words only"]


async def test_a_query_never_addresses_a_column(local: Local) -> None:
    await local.turn("my body is fine")
    assert await local.found("body:fine") == ["my body is fine"]
    assert await local.found("rank") == []


async def test_random_strings_raise_nothing(local: Local) -> None:
    await local.turn("a b c AND OR NOT (x) \"y\" 'z' * - + : ^ { } ~ \\ 中文 ไทย 😀")
    chooser = random.Random(7)
    alphabet = "abc AND OR NOT NEAR ( ) \" ' * - + : ^ { } ~ \\ \x00 \ud83d 中文 ไทย 😀 é \u200d \t\n"
    for _ in range(2_000):
        await local.recall("".join(chooser.choice(alphabet) for _ in range(chooser.randint(1, 60))))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(), max_size=60))
def test_any_word_of_any_text_that_recall_looks_for_finds_the_text(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Whatever is indexed is found by itself: a query is cut exactly as the index is."""
    import trio

    async def store_and_find() -> None:
        backend = backend_in(tmp_path_factory.mktemp("home"))
        await backend.open()
        try:
            local = Local(backend, tmp_path_factory.getbasetemp())
            await local.turn(f"{text} marker")
            assert [hit.text for hit in await backend.recall(Query("ada", f"{text} marker"))] == [f"{text} marker"]
        finally:
            await backend.aclose()

    trio.run(store_and_find)


@pytest.mark.parametrize("count", [1, 10_291])
async def test_nul_runs_leave_the_index_whole(local: Local, count: int) -> None:
    text = "before " + "\x00" * count + " after"
    await local.turn("other row", session="o")
    await local.turn(text)
    assert await local.found("before") == await local.found("after") == [text]
    assert await local.found("other") == ["other row"]
    await local.backend.check_index()
