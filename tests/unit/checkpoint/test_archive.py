"""What goes in comes out byte for byte, once, and the id says what was said."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.checkpoint import Archive
from memoryd.core import Receipt, canonical_bytes, raw_row
from memoryd.errors import CheckpointNotFound, DeadlineExceeded, InvalidInput, StoreBroken, StoreLocked
from memoryd.store import ProfileStore, open_profile

Rows = list[dict[str, Any]]
Talk = Callable[..., Rows]
Upsert = Callable[..., Receipt]


def canonical(rows: Any) -> tuple[bytes, ...]:
    return tuple(raw_row(row)[0] for row in rows)


# -- identity, growth, forks ----------------------------------------------------------------------------------------------------------


def test_a_receipt_says_what_was_archived(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    rows = [{"role": "system", "content": "be kind"}, *talk(4), {"role": "tool", "content": "x"}, 7]
    receipt = upsert(rows)
    assert receipt
    assert (receipt.rows, receipt.evidence, receipt.new_rows, receipt.degraded, receipt.erased) == (7, 4, 7, 1, 0)
    assert (receipt.attempt, receipt.verdict, receipt.archive) == (1, "archived", str(archive.path))
    assert len(receipt.id) == 64
    assert archive.restore(receipt.id).rows == canonical(rows)


def test_an_unchanged_transcript_adds_an_attempt_and_no_row(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    first, second = upsert(talk(500)), upsert(talk(500), host="another", trigger="auto", at=2_000_000)
    assert (second.id, second.attempt, second.new_rows) == (first.id, 2, 0)
    (info,) = archive.list()
    assert [(a.attempt, a.host, a.trigger) for a in info.attempts] == [(1, "test", "manual"), (2, "another", "auto")]


def test_a_grown_transcript_adds_only_its_new_rows(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    first, second = upsert(talk(500)), upsert(talk(503))
    assert second.new_rows == 3
    assert second.id != first.id
    assert archive.restore(first.id).rows == canonical(talk(500))
    assert archive.restore(second.id).rows == canonical(talk(503))


@pytest.mark.parametrize("changed", [0, 1, 250, 499])
def test_a_changed_earlier_row_forks_and_both_are_kept(archive: Archive, upsert: Upsert, talk: Talk, changed: int) -> None:
    first = upsert(talk(500, 600))
    rows = talk(500, 600)
    rows[changed]["content"] = "changed"
    second = upsert(rows)
    assert second.new_rows == 1  # what follows is the same bytes, and stored once
    assert archive.restore(first.id).rows == canonical(talk(500, 600))
    assert archive.restore(second.id).rows == canonical(rows)


def test_keys_that_the_host_adds_change_the_rows_and_not_the_id(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    first = upsert(talk(6))
    rows = [{**row, "_row_id": 100 + number} for number, row in enumerate(talk(6))]
    second = upsert(rows)
    assert (second.id, second.attempt, second.new_rows) == (first.id, 2, 6)
    assert archive.restore(first.id).rows == canonical(rows)
    assert archive.restore(first.id, attempt=1).rows == canonical(talk(6))


def test_the_same_words_of_another_session_or_user_are_another_checkpoint(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    ids = {upsert(talk(4), user=user, session=session).id for user in ("a", "b") for session in ("a", "b")}
    assert len(ids) == 4
    assert [info.session for info in archive.list("a")] == ["b", "a"]
    assert [(info.user, info.session) for info in archive.list("b", "a")] == [("b", "a")]
    assert archive.list("c") == ()


def test_names_of_any_characters_are_told_apart(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    names = ["a", "A", "a\x00", "\x00", "\ud800", "\udfff", "é", "e\u0301", "'; --", "x" * 500]
    ids = {upsert(talk(2), session=name).id for name in names}
    assert len(ids) == len(names)
    assert {info.session for info in archive.list()} == set(names)


@pytest.mark.parametrize("names", [{"session": ""}, {"user": ""}, {"session": "x" * 501}, {"session": 5}, {"host": None}, {"source": "text"}])
def test_bad_names_are_typed_errors_and_write_nothing(archive: Archive, upsert: Upsert, talk: Talk, names: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        upsert(talk(2), **names)
    assert archive.list() == ()


def test_the_host_s_list_is_not_changed_and_may_change_meanwhile(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    rows = talk(3000)
    before = copy.deepcopy(rows)
    upsert(rows)
    assert rows == before
    stop = threading.Event()

    def meddle() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            rows[number % 3000][f"k{number % 20}"] = number
            rows.append({"role": "user", "content": "more"})
            rows.pop()
            if number % 50 == 0:
                rows[number % 3000].clear()

    thread = threading.Thread(target=meddle)
    thread.start()
    try:
        receipts = [upsert(rows) for _ in range(5)]
    finally:
        stop.set()
        thread.join()
    for receipt in receipts:
        assert len(archive.restore(receipt.id, attempt=receipt.attempt).rows) == receipt.rows
    assert archive.verify().ok


# -- odd rows -------------------------------------------------------------------------------------------------------------------------


def test_one_odd_row_never_refuses(archive: Archive, upsert: Upsert) -> None:
    rows = [
        {"role": "user", "content": "a"}, {"role": "user"}, {"content": "no role"}, {}, None, 5, "half a li", b"\xff", {1: 2}, [{}],
        {"role": "user", "content": float("nan")}, {"role": "user", "content": {"b"}}, object, {"role": "user", "content": "\ud800\x00"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}]},
    ]  # fmt: skip
    receipt = upsert(rows)
    assert (receipt.rows, receipt.evidence, receipt.degraded) == (15, 2, 9)
    assert archive.restore(receipt.id).rows == canonical(rows)
    assert archive.verify().ok


def test_an_empty_list_is_a_checkpoint_of_nothing(archive: Archive, upsert: Upsert) -> None:
    receipt = upsert([])
    assert (receipt.rows, receipt.evidence) == (0, 0)
    assert archive.restore(receipt.id).rows == ()


def test_rows_of_ten_megabytes(archive: Archive, upsert: Upsert) -> None:
    rows = [{"role": "user", "content": f"{n} " + "x" * 10_000_000} for n in range(2)]
    receipt = upsert(rows)
    assert archive.restore(receipt.id).rows == canonical(rows)
    assert archive.usage() < 2_000_000


def test_a_hundred_thousand_messages(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    rows = talk(100_000, 40)
    first = upsert(rows, seconds=120)
    again = upsert([*rows, *talk(2, tag="new")], seconds=120)
    assert (first.rows, first.evidence, again.new_rows) == (100_000, 100_000, 2)
    assert archive.restore(first.id).rows == canonical(rows)


# -- reading --------------------------------------------------------------------------------------------------------------------------


def test_an_id_may_be_cut_as_long_as_it_is_clear(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    receipt = upsert(talk(2))
    assert archive.show(receipt.id[:8]).id == archive.restore(receipt.id[:9].upper()).id == receipt.id
    for wrong in (receipt.id[:7], "", "0" * 64, "x" * 12, receipt.id + "0", "\ud800" * 9):
        with pytest.raises(CheckpointNotFound):
            archive.restore(wrong)
    with pytest.raises(CheckpointNotFound, match="attempt 9"):
        archive.restore(receipt.id, attempt=9)


@pytest.mark.parametrize("limit", [-5, 0, 1, 10**12])
def test_any_limit_is_fine(archive: Archive, upsert: Upsert, talk: Talk, limit: int) -> None:
    for session in ("a", "b"):
        upsert(talk(2), session=session)
    assert len(archive.list(limit=limit)) == max(0, min(2, limit))


@pytest.mark.parametrize(
    "source", [b"", b"\n", b"a", b"a\r\nb\rc\n\n\nlast", b"\xff\x00\n" * 1000, b'{"a":1}\n{"b":2}\n{"half', b"x" * 3_000_000 + b"\n"]
)
def test_a_source_comes_back_as_its_own_bytes(archive: Archive, upsert: Upsert, talk: Talk, source: bytes) -> None:
    receipt = upsert(talk(2), source=source)
    grown = upsert(talk(2), source=source + b"\nmore")
    assert archive.restore(receipt.id, attempt=1, full=True).source == (source or None)
    assert archive.restore(grown.id, full=True).source == source + b"\nmore"
    assert archive.restore(grown.id).source is None
    assert archive.verify().ok


# -- time, overlap ------------------------------------------------------------------------------------------------------------------------


def test_progress_grows_until_the_transcript_is_archived(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    rows, seconds, stored = talk(20_000, 600), 0.05, [0]
    receipt = None
    while receipt is None:
        try:
            receipt = upsert(rows, seconds=seconds)
        except DeadlineExceeded:
            ((count,),) = archive._files.reader.all("SELECT coalesce(sum(length(flags)), 0) FROM page")
            stored.append(count)
            seconds *= 1.5 if count == stored[-2] else 1  # a busy machine did not come as far as the last time
    assert len(stored) > 2
    assert stored == sorted(stored)
    assert receipt.new_rows == 20_000 - stored[-1]
    assert archive.restore(receipt.id).rows == canonical(rows)


def test_a_transcript_of_1324_messages_and_930000_characters(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    rows = talk(1324, 702)
    assert upsert(rows, seconds=20).rows == 1324


def test_a_deadline_that_has_passed_writes_nothing(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    with pytest.raises((DeadlineExceeded, StoreLocked)):
        upsert(talk(3), seconds=-1)
    assert archive.list() == ()
    assert upsert(talk(3)).new_rows == 3


def test_a_locked_archive_refuses_at_the_deadline_and_names_the_file(archive: Archive, profile: ProfileStore, upsert: Upsert, talk: Talk) -> None:
    with Archive.open(profile) as other, other._files.writer.transaction():
        started = time.monotonic()
        with pytest.raises(StoreLocked, match=r"archive\.db"):
            upsert(talk(3), seconds=0.3)
        assert time.monotonic() - started < 5
    assert upsert(talk(3)).new_rows == 3


def test_threads_of_one_archive_and_of_two_agree(archive: Archive, profile: ProfileStore, talk: Talk) -> None:
    receipts: list[Receipt] = []
    with Archive.open(profile) as other:

        def work(target: Archive, count: int) -> None:
            receipts.append(
                target.upsert(
                    talk(count, 400), user="u", session="s", host="h", trigger="t", at=1, deadline=time.monotonic() + 60
                )
            )

        threads = [
            threading.Thread(target=work, args=(target, count)) for count in (3000, 3000, 3200, 10) for target in (archive, other)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(receipts) == 8
    assert len({receipt.id for receipt in receipts}) == 3
    assert sum(receipt.new_rows for receipt in receipts) == 3200  # no row twice
    for receipt in receipts:
        assert archive.restore(receipt.id).rows == canonical(talk(receipt.rows, 400))


def test_a_file_that_was_removed_while_open_gives_no_receipt(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    upsert(talk(2))
    archive.path.unlink()
    with pytest.raises(StoreBroken, match="removed or replaced"):
        upsert(talk(4))


# -- any history ----------------------------------------------------------------------------------------------------------------------------

edits = st.lists(
    st.tuples(st.sampled_from(["grow", "edit", "keys", "cut", "drop", "swap", "again"]), st.integers(0, 40), st.integers(0, 5)), max_size=12
)


@given(edits=edits)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history_of_a_transcript_restores_byte_for_byte(tmp_path_factory: pytest.TempPathFactory, edits: list[Any]) -> None:
    profile = open_profile(Path(tmp_path_factory.mktemp("history")), "p")
    rows: Rows = [{"role": "user", "content": "start"}]
    kept: list[tuple[Receipt, tuple[bytes, ...]]] = []
    with Archive.open(profile) as archive:
        for kind, where, value in edits:
            rows = _edited(rows, kind, where, value)
            receipt = archive.upsert(rows, user="u", session="s", host="", trigger="", at=1, deadline=time.monotonic() + 20)
            kept.append((receipt, canonical(rows)))
        for receipt, expected in kept:
            assert archive.restore(receipt.id, attempt=receipt.attempt).rows == expected
        assert archive.verify().ok
    by_words: dict[tuple[Any, ...], str] = {}
    for receipt, expected in kept:
        said = tuple((row["role"], row["content"]) for row in map(json.loads, expected))
        assert by_words.setdefault(said, receipt.id) == receipt.id
    assert len(set(by_words.values())) == len(by_words)


def _edited(rows: Rows, kind: str, where: int, value: int) -> Rows:
    rows = copy.deepcopy(rows)
    at = where % len(rows) if rows else 0
    match kind:
        case "grow":
            rows += [{"role": "assistant" if n % 2 else "user", "content": f"{value}-{n}"} for n in range(value)]
        case "edit" if rows:
            rows[at]["content"] = f"edited {value}"
        case "keys" if rows:
            rows[at]["_row_id"] = value
        case "cut":
            rows = rows[:at]
        case "drop" if rows:
            del rows[at]
        case "swap" if rows:
            rows[at], rows[0] = rows[0], rows[at]
        case _:
            pass
    return rows


def test_canonical_bytes_are_what_is_stored(archive: Archive, upsert: Upsert) -> None:
    row = {"role": "user", "content": "x", "b": 1.0, "a": [True, None]}
    assert archive.restore(upsert([row]).id).rows == (canonical_bytes(row),)
