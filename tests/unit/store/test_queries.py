from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memoryd.store import Schema, load_migrations, load_queries


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "some_queries"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    load_queries.cache_clear()
    monkeypatch.delitem(sys.modules, "some_queries", raising=False)
    return folder


def test_statements_are_found_by_name(package: Path) -> None:
    (package / "queries.sql").write_text(
        "-- what this file is for\n\n-- name: append\nINSERT INTO t\nVALUES (?)  -- why\n\n-- name: head\nSELECT max(id) FROM t\n"
    )
    queries = load_queries("some_queries")
    assert dict(queries) == {"append": "INSERT INTO t\nVALUES (?)  -- why", "head": "SELECT max(id) FROM t"}
    assert load_queries("some_queries") is queries
    with pytest.raises(TypeError):
        queries["new"] = "x"  # type: ignore[index]


@pytest.mark.parametrize("text", ["SELECT 1\n-- name: a\nSELECT 2", "-- name: a\nSELECT 1\n-- name: a\nSELECT 2"])
def test_a_statement_without_a_name_of_its_own_is_refused(package: Path, text: str) -> None:
    (package / "queries.sql").write_text(text)
    with pytest.raises(ValueError, match="name of its own"):
        load_queries("some_queries")


def test_migrations_come_in_order(package: Path) -> None:
    folder = package / "migrations"
    folder.mkdir()
    (folder / "0002_more.sql").write_text("B")
    (folder / "0001_first.sql").write_text("A")
    (folder / "README.md").write_text("not one")
    assert load_migrations("some_queries") == ("A", "B")
    schema = Schema.load("notes", "some_queries")
    assert (schema.kind, schema.version) == ("notes", 2)


@pytest.mark.parametrize("names", [[], ["0002_x.sql"], ["0001_a.sql", "0003_c.sql"], ["0001_a.sql", "0001_b.sql"]])
def test_a_gap_in_the_migrations_is_refused(package: Path, names: list[str]) -> None:
    folder = package / "migrations"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("x")
    with pytest.raises(ValueError, match="without a gap"):
        load_migrations("some_queries")
