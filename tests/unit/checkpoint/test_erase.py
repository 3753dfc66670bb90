"""What was forgotten is in no file, whoever looks; what was not is untouched."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoryd.checkpoint import Archive, Erasure, Shelf
from memoryd.checkpoint._packs import Pack, plain_of
from memoryd.core import Receipt
from memoryd.store import ProfileStore

Rows = list[dict[str, Any]]
Upsert = Callable[..., Receipt]

GREP = """
import sys, zlib
from pathlib import Path

def everything(data):
    yield data
    at = data.find(b"\\x78\\x01")
    while at >= 0:
        try:
            yield zlib.decompressobj().decompress(data[at:])
        except zlib.error:
            pass
        at = data.find(b"\\x78\\x01", at + 1)

words = [word.encode() for word in sys.argv[2:]]
for path in sorted(Path(sys.argv[1]).rglob("*")):
    if path.is_file():
        for text in everything(path.read_bytes()):
            print(*(word.decode() for word in words if word in text))
"""


def grep(home: Path, *words: str) -> set[str]:
    """Which of the words another process finds in any file, looking into what is compressed."""
    found = subprocess.run([sys.executable, "-c", GREP, str(home), *words], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def turn(user: str, assistant: str, **keys: Any) -> Rows:
    return [{"role": "user", "content": user, **keys}, {"role": "assistant", "content": assistant, **keys}]


A, B, C = turn("aq7Zk", "bX93p"), turn("cQ0vT", "dM4sN"), turn("eR8yW", "fK2hJ")


def said(archive: Archive, receipt: Receipt) -> list[str | None]:
    return [json.loads(row)["content"] if row is not None else None for row in archive.restore(receipt.id).rows]


def forget(archive: Archive, rows: Rows, **more: Any) -> Any:
    identities = archive.identities_of_turn(rows[0]["content"], rows[-1]["content"])
    return archive.erase(Erasure("u", turns=(identities,), **more))


def test_a_turn_is_erased_from_every_file_and_the_rest_stays(profile: ProfileStore, archive: Archive, upsert: Upsert) -> None:
    receipt = upsert([*A, *B, *C])
    assert grep(profile.directory, "aq7Zk", "cQ0vT", "dM4sN", "fK2hJ") == {"aq7Zk", "cQ0vT", "dM4sN", "fK2hJ"}
    forgotten = forget(archive, B, session="s")
    assert (forgotten.erased, forgotten.pending, forgotten.quoted) == (2, 0, 0)
    assert said(archive, receipt) == ["aq7Zk", "bX93p", None, None, "eR8yW", "fK2hJ"]
    assert archive.restore(receipt.id).erased == 2
    verification = archive.verify()
    assert (verification.ok, verification.erased) == (True, 2)
    archive.close()
    assert grep(profile.directory, "aq7Zk", "cQ0vT", "dM4sN", "fK2hJ") == {"aq7Zk", "fK2hJ"}


def test_words_in_large_packs_are_gone_too(archive: Archive, upsert: Upsert) -> None:
    upsert([*(A * 2000), *B, *(C * 2000)])
    forget(archive, B)
    packs = [plain_of(Pack(*row)) for row in archive._files.reader.all("SELECT codec, size, data FROM pack")]
    assert any(b"aq7Zk" in pack for pack in packs)
    assert not any(b"cQ0vT" in pack or b"dM4sN" in pack for pack in packs)


def test_the_same_transcript_stays_erased_and_a_new_turn_with_the_same_words_is_new(archive: Archive, upsert: Upsert) -> None:
    upsert([*A, *B, *C])
    forget(archive, B)
    again = upsert([*A, *B, *C])
    assert (again.erased, again.new_rows, bool(again)) == (2, 0, True)
    with_keys = upsert([{**row, "_row_id": n} for n, row in enumerate([*A, *B, *C])])
    assert (with_keys.erased, with_keys.new_rows) == (2, 4)
    assert said(archive, with_keys) == ["aq7Zk", "bX93p", None, None, "eR8yW", "fK2hJ"]
    later = upsert([*A, *B, *C, *B])
    assert said(archive, later)[-2:] == ["cQ0vT", "dM4sN"]
    assert archive.verify().ok


def test_repeating_an_erasure_does_no_harm_and_leaves_newer_rows_alone(archive: Archive, upsert: Upsert) -> None:
    upsert([*A, *B], at=1000)
    assert forget(archive, B, until=2000).erased == 2
    later = upsert([*A, *B, *B], at=3000)
    again = forget(archive, B, until=2000)
    assert again.erased == 0
    assert said(archive, later) == ["aq7Zk", "bX93p", None, None, "cQ0vT", "dM4sN"]


def test_rows_between_a_turn_s_question_and_answer_go_with_it(archive: Archive, upsert: Upsert) -> None:
    between = [
        {"role": "assistant", "content": "let me look", "tool_calls": []}, {"role": "tool", "content": "cQ0vT found"},
        {"role": "system", "content": "note"},
    ]  # fmt: skip
    receipt = upsert([*A, B[0], *between, B[1], {"role": "tool", "content": "trailing"}, *C])
    assert forget(archive, B).erased == 6
    assert said(archive, receipt) == ["aq7Zk", "bX93p", None, None, None, None, None, None, "eR8yW", "fK2hJ"]


def test_the_same_question_of_another_turn_is_reported_and_not_erased(archive: Archive, upsert: Upsert) -> None:
    receipt = upsert([*turn("ok", "first answer"), *turn("ok", "second answer")])
    forgotten = forget(archive, turn("ok", "second answer"))
    assert (forgotten.erased, forgotten.quoted) == (2, 1)
    assert said(archive, receipt) == ["ok", "first answer", None, None]


def test_a_turn_that_is_nowhere_whole_is_found_by_either_row(archive: Archive, upsert: Upsert) -> None:
    receipt = upsert([*A, B[0], {"role": "assistant", "content": "the host split"}, {"role": "assistant", "content": "its answer"}, *C])
    forget(archive, B)
    assert said(archive, receipt)[2] is None
    assert said(archive, receipt)[-2:] == ["eR8yW", "fK2hJ"]


def test_other_sessions_and_users_keep_their_rows_and_quotes_are_counted(archive: Archive, upsert: Upsert) -> None:
    upsert([*A, *B], session="one")
    two, other = upsert([*B, *C], session="two"), upsert([*A, *B], user="v", session="one")
    forgotten = forget(archive, B, session="one")
    assert (forgotten.erased, forgotten.quoted) == (2, 2)
    assert None not in said(archive, two) + said(archive, other)


def test_every_branch_is_erased(archive: Archive, upsert: Upsert) -> None:
    receipts = [upsert([*A, *B, *C]), upsert([*A, *B, *turn("another", "way")]), upsert([{"role": "system", "content": "x"}, *A, *B])]
    forget(archive, B)
    for receipt in receipts:
        assert said(archive, receipt).count(None) == 2


def test_a_session_and_a_user_go_whole(profile: ProfileStore, archive: Archive, upsert: Upsert) -> None:
    system = [{"role": "system", "content": "sY5tE"}]
    one, two = upsert([*system, *A], session="one", source=b"sOuR1\n"), upsert([*B], session="two", source=b"sOuR2\n")
    upsert([*C], user="v")
    assert archive.erase(Erasure("u", "one")).erased == 3
    assert said(archive, one) == [None] * 3
    assert said(archive, two) == ["cQ0vT", "dM4sN"]
    assert upsert([*system, *A], session="one").erased == 3
    assert upsert([*[{**row, "k": 1} for row in system], *A], session="one").erased == 3
    assert archive.erase(Erasure("u")).erased == 2
    assert archive.verify().ok
    assert archive.restore(one.id, attempt=1, full=True).source == b""
    archive.close()
    assert grep(profile.directory, "sY5tE", "aq7Zk", "bX93p", "cQ0vT", "dM4sN", "sOuR1", "sOuR2", "eR8yW") == {"eR8yW"}


def test_a_time_range_is_about_when_rows_were_first_archived(archive: Archive, upsert: Upsert) -> None:
    upsert([*A], at=1000)
    upsert([*A, *B], at=2000)
    last = upsert([*A, *B, *C], at=3000)
    assert archive.erase(Erasure("u", since=1500, until=2500)).erased == 2
    assert said(archive, last) == ["aq7Zk", "bX93p", None, None, "eR8yW", "fK2hJ"]
    assert archive.erase(Erasure("u", since=3000)).erased == 2


@pytest.mark.parametrize("pretty", [False, True])
def test_the_lines_of_a_source_go_with_their_rows(profile: ProfileStore, archive: Archive, upsert: Upsert, pretty: bool) -> None:
    rows = [*A, *turn('sAy "qU0te"\nand é ' + "w" * 20, "dM4sN"), *C]
    lines = [json.dumps({"type": "x", "uuid": n, "message": row}, ensure_ascii=n % 2 == 0) for n, row in enumerate(rows)]
    source = json.dumps(rows, indent=2).encode() if pretty else "\n".join(lines).encode()
    receipt = upsert(rows, source=source)
    forget(archive, rows[2:4])
    kept = archive.restore(receipt.id, full=True).source
    assert kept is not None
    assert b"aq7Zk" in kept
    assert b"fK2hJ" in kept
    assert b"qU0te" not in kept
    assert b"dM4sN" not in kept
    assert upsert(rows, source=b"\n" + source).erased == 2
    archive.close()
    assert grep(profile.directory, "qU0te", "dM4sN") == set()


def test_a_row_that_another_session_has_as_the_same_bytes_stays_there(archive: Archive, upsert: Upsert) -> None:
    upsert([*A, *B], session="one")
    two = upsert([*A, *B], session="two")
    archive.erase(Erasure("u", "one"))
    assert said(archive, two) == ["aq7Zk", "bX93p", "cQ0vT", "dM4sN"]
    assert archive.verify().ok


def test_an_erasure_that_stopped_half_way_ends_when_repeated(profile: ProfileStore, archive: Archive, upsert: Upsert) -> None:
    upsert([*A, *B, *C])
    pinned = archive._files.reader
    with pinned.transaction("DEFERRED"):
        pinned.all("SELECT count(*) FROM page")
        assert forget(archive, B).pending == 1
    assert forget(archive, B).pending == 0
    archive.close()
    assert grep(profile.directory, "cQ0vT", "dM4sN") == set()


def test_checkpoints_that_run_beside_an_erasure_do_not_bring_rows_back(profile: ProfileStore, archive: Archive, upsert: Upsert) -> None:
    upsert([*A, *B])
    with Archive.open(profile) as other:
        other.upsert([*A, *B], user="u", session="s", host="", trigger="", at=1, deadline=time.monotonic() + 20)
        forget(archive, B)
        rows = [{**row, "k": 1} for row in [*A, *B]]
        assert other.upsert(rows, user="u", session="s", host="", trigger="", at=1, deadline=time.monotonic() + 20).erased == 2


def test_the_second_archive_is_erased_too(profile: ProfileStore, tmp_path: Path) -> None:
    shelf = Shelf(profile, fallback_dir=tmp_path / "second")
    for archive in (shelf.primary(), shelf.second()):
        archive.upsert([*A, *B], user="u", session="s", host="", trigger="", at=1, deadline=time.monotonic() + 20)
    assert shelf.erase(Erasure("u", turns=(shelf.identities_of_turn("cQ0vT", "dM4sN"),))).erased == 4
    shelf.close()
    assert grep(tmp_path, "cQ0vT", "dM4sN") == set()


def test_nothing_to_erase_is_fine(archive: Archive) -> None:
    assert archive.erase(Erasure("nobody")).erased == 0
    assert archive.identities_of_turn("", " \n") == ()
