"""Damage is found and named; garbage goes, and nothing that a checkpoint reaches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from memoryd.checkpoint import Archive, Collected
from memoryd.checkpoint._packs import Pack, blanked, compressed, plain_of
from memoryd.core import Receipt, canonical_bytes
from memoryd.errors import StoreCorrupt
from memoryd.store import ProfileStore

Talk = Callable[..., list[dict[str, Any]]]
Upsert = Callable[..., Receipt]
DAY = 86_400_000_000


def change(archive: Archive, sql: str, *values: object) -> None:
    """What a bad disk or a bad program may do behind our back."""
    archive._files.writer.run(sql, values)


def test_everything_sound(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    upsert(talk(300, 600), source=b"a\nb\n")
    upsert(talk(310, 600))
    upsert(talk(4), session="two")
    seen: list[tuple[int, int]] = []
    verification = archive.verify(on_progress=lambda done, total: seen.append((done, total)))
    assert verification.ok
    assert (verification.checkpoints, verification.rows, verification.erased) == (3, 316, 0)
    assert seen[-1][0] == seen[-1][1] == len(seen)


def test_one_checkpoint_alone(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    receipt = upsert(talk(6))
    upsert(talk(4), session="two")
    verification = archive.verify(receipt.id[:8])
    assert (verification.checkpoints, verification.rows, verification.ok) == (1, 6, True)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE pack SET data = zeroblob(length(data)) WHERE id = (SELECT max(id) FROM pack)",
        "UPDATE pack SET data = x'00', codec = 0, size = 1 WHERE id = (SELECT max(id) FROM pack)",
        "UPDATE pack SET size = size + 1 WHERE id = (SELECT max(id) FROM pack)",
        "DELETE FROM pack WHERE id = (SELECT max(id) FROM pack)",
        "DELETE FROM page WHERE id = (SELECT max(id) FROM page)",
        "UPDATE page SET contents = zeroblob(length(contents)) WHERE id = (SELECT max(id) FROM page)",
        "UPDATE page SET nodes = zeroblob(length(nodes)) WHERE id = (SELECT max(id) FROM page)",
        "UPDATE page SET base = zeroblob(32) WHERE id = (SELECT max(id) FROM page)",
        "UPDATE page SET node = zeroblob(32) WHERE id = (SELECT max(id) FROM page)",
        "UPDATE page SET places = zeroblob(length(places)) WHERE id = (SELECT max(id) FROM page)",
        "UPDATE attempt SET digest = zeroblob(32) WHERE id = (SELECT max(id) FROM attempt)",
        "UPDATE attempt SET at = at + 1 WHERE id = (SELECT max(id) FROM attempt)",
    ],
)
def test_damage_is_named_and_only_where_it_is(archive: Archive, upsert: Upsert, talk: Talk, damage: str) -> None:
    sound, grown, other = upsert(talk(300, 600)), upsert(talk(303, 600)), upsert(talk(4, tag="o"), session="0")
    change(archive, damage.replace("max(id)", "max(id) - 1"))
    verification = archive.verify()
    assert verification.corrupt == (grown.id,)
    assert not verification.ok
    assert archive.restore(sound.id).rows == tuple(map(canonical_bytes, talk(300, 600)))
    assert archive.restore(other.id).rows == tuple(map(canonical_bytes, talk(4, tag="o")))


def test_restoring_from_a_damaged_pack_is_a_typed_error(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    receipt = upsert(talk(10))
    change(archive, "UPDATE pack SET data = x'789c'")
    with pytest.raises(StoreCorrupt, match="does not decompress"):
        archive.restore(receipt.id)


def test_a_fork_of_a_damaged_transcript_is_stored_whole(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    upsert(talk(100))
    change(archive, "UPDATE pack SET data = zeroblob(length(data))")
    rows = [{"role": "user", "content": "changed"}, *talk(100)[1:]]
    receipt = upsert(rows)
    assert archive.restore(receipt.id).rows == tuple(map(canonical_bytes, rows))


def test_a_corrupt_page_of_the_file_is_a_typed_error(profile: ProfileStore, talk: Talk) -> None:
    with Archive.open(profile) as archive:
        put = archive.upsert(talk(3000, 900), user="u", session="s", host="", trigger="", at=1, deadline=time.monotonic() + 20)
    data = bytearray((profile.directory / "archive.db").read_bytes())
    for page in range(3, len(data) // 4096):
        data[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    (profile.directory / "archive.db").write_bytes(data)
    with pytest.raises(StoreCorrupt), Archive.open(profile) as archive:
        archive.restore(put.id)


# -- garbage --------------------------------------------------------------------------------------------------------------------------


def test_unfinished_progress_is_spared_for_a_day_and_then_goes(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    kept = upsert(talk(300, 600))
    upsert(talk(2000, 300), session="cut", at=5 * DAY)
    change(archive, "DELETE FROM attempt WHERE time = ?", 5 * DAY)  # as if it had been stopped before its receipt
    assert archive.collect(at=5 * DAY + 1000) == Collected(0, 0)
    assert upsert(talk(2001, 300), session="cut", at=5 * DAY).new_rows == 1
    change(archive, "DELETE FROM attempt WHERE time = ?", 5 * DAY)
    collected = archive.collect(at=6 * DAY + 1000)
    assert collected.pages > 1
    assert collected.packs > 1
    assert archive.restore(kept.id).rows == tuple(map(canonical_bytes, talk(300, 600)))
    assert archive.verify().ok
    assert archive.collect(at=9 * DAY) == Collected(0, 0)
    assert upsert(talk(300, 600)).new_rows == 0


def test_collecting_removes_nothing_that_is_reached(archive: Archive, upsert: Upsert, talk: Talk) -> None:
    receipts = [upsert(talk(count, 600), source=b"x\n" * count) for count in (10, 500, 300, 502)]
    changed = talk(502, 600)
    changed[5]["content"] = "changed"
    receipts.append(upsert(changed))
    assert archive.collect(at=10**16) == Collected(0, 0)
    for receipt, rows in zip(receipts, (talk(10, 600), talk(500, 600), talk(300, 600), talk(502, 600), changed), strict=True):
        assert archive.restore(receipt.id).rows == tuple(map(canonical_bytes, rows))


# -- packs ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [b"", b"x", b"ab" * 100_000, bytes(range(256)) * 3])
def test_a_pack_gives_back_its_bytes(plain: bytes) -> None:
    assert plain_of(compressed(plain)) == plain


@pytest.mark.parametrize("pack", [Pack(1, 5, b"no zlib"), Pack(1, 5, b""), Pack(0, 5, b"four"), Pack(1, 9, compressed(b"a" * 99).data)])
def test_a_damaged_pack_raises(pack: Pack) -> None:
    with pytest.raises(ValueError, match=r"decompress|bytes instead"):
        plain_of(pack)


def test_blanking_keeps_the_others_in_their_places() -> None:
    assert blanked(b"aaabbbccc", [(3, 3)]) == b"\0\0\0bbb\0\0\0"
    assert blanked(b"aaa", []) == b"\0\0\0"
