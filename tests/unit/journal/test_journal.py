"""The log: append, order, duplicates, held events, quotas, spool, cursors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.core import Cursor, Scope, Turn, new_event_id
from memoryd.errors import ClosedError, StoreCorrupt
from memoryd.journal import Journal, Limits, Outbox
from memoryd.store import Options, ProfileStore, connect, open_profile

SCOPE = Scope(user="ada", session="s1")


def turn(text: str = "hi") -> Turn:
    return Turn(new_event_id(), SCOPE, 1_700_000_000_000_000, text, "ho")


@pytest.fixture
def profile(tmp_path: Path) -> ProfileStore:
    return open_profile(tmp_path, "default")


@pytest.fixture
def journal(profile: ProfileStore) -> Iterator[Journal]:
    opened = Journal(profile, Limits())
    yield opened
    opened.close()


def texts(journal: Journal) -> list[str]:
    return [entry.event.user for entry in journal.read(0, 10_000) if isinstance(entry.event, Turn)]


def test_events_come_back_in_order_of_acceptance(journal: Journal) -> None:
    accepted = [journal.append(turn(str(n))) for n in range(20)]
    assert [a.seq for a in accepted] == list(range(1, 21))
    assert {a.state for a in accepted} == {"journaled"}
    assert texts(journal) == [str(n) for n in range(20)]
    assert journal.head() == Cursor(journal.epoch, 20)


def test_a_repeated_turn_key_returns_the_first(journal: Journal) -> None:
    first = journal.append(turn("one"), b"key")
    again = journal.append(turn("two"), b"key")
    assert (again.state, again.seq, again.event_id, again.reason) == (
        "journaled",
        first.seq,
        first.event_id,
        "duplicate",
    )
    assert texts(journal) == ["one"]


def test_many_threads_lose_and_double_nothing(journal: Journal) -> None:
    def work(name: int) -> None:
        for n in range(50):
            journal.append(turn(f"{name}:{n}"))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = texts(journal)
    assert len(found) == len(set(found)) == 400
    for name in range(8):
        mine = [int(text.split(":")[1]) for text in found if text.startswith(f"{name}:")]
        assert mine == list(range(50))


def test_reading_is_paged_by_count_and_size(journal: Journal) -> None:
    for n in range(10):
        journal.append(turn("x" * 1000 + str(n)))
    assert [entry.seq for entry in journal.read(3, count=4)] == [4, 5, 6, 7]
    assert [entry.seq for entry in journal.read(0, max_bytes=2500)] == [1, 2]
    assert [entry.seq for entry in journal.read(0, max_bytes=1)] == [1]  # one too big for the limit still comes


def test_a_locked_log_holds_in_order_and_takes_them_later(profile: ProfileStore, journal: Journal) -> None:
    other = connect(journal.path, Options())
    journal.append(turn("before"))
    with other.transaction("IMMEDIATE"):
        held = [journal.append(turn(f"held {n}")) for n in range(3)]
        same = journal.append(turn("keyed"), b"k")
        again = journal.append(turn("keyed again"), b"k")
        assert journal.retry_held() == 4
    other.close()
    assert {a.state for a in held} == {"held"}
    assert all(a.seq is None and a.event_id for a in held)
    assert (again.state, again.event_id, again.reason) == ("held", same.event_id, "duplicate")
    assert journal.append(turn("after")).state == "held"  # nothing overtakes what is held
    assert journal.retry_held() == 0
    assert journal.append(turn("last")).state == "journaled"
    assert texts(journal) == ["before", "held 0", "held 1", "held 2", "keyed", "after", "last"]


def test_held_memory_is_bounded(profile: ProfileStore) -> None:
    journal = Journal(profile, Limits(held_max_bytes=5000))
    other = connect(journal.path, Options())
    with other.transaction("IMMEDIATE"):
        states = [journal.append(turn("x" * 1000)).state for _ in range(10)]
        assert journal.held_bytes <= 5000
    other.close()
    assert states == ["held"] * states.count("held") + ["refused"] * states.count("refused")
    assert 0 < states.count("held") < 10
    assert journal.refused == states.count("refused")
    journal.close()


def test_what_is_held_at_close_is_there_after_the_next_open(profile: ProfileStore) -> None:
    journal = Journal(profile, Limits())
    other = connect(journal.path, Options())
    with other.transaction("IMMEDIATE"):
        journal.append(turn("spooled \ud800"), b"key")
        journal.close()
    other.close()
    spooled = list((profile.directory / "spool").iterdir())
    assert len(spooled) == 1
    assert spooled[0].stat().st_mode & 0o777 == 0o600
    again = Journal(profile, Limits())
    assert again.ingest_spool() == 1
    assert again.ingest_spool() == 0
    assert texts(again) == ["spooled \ud800"]
    assert not list((profile.directory / "spool").iterdir())
    again.close()


@pytest.mark.parametrize("damage", ["cut", "flip", "garbage"])
def test_a_damaged_spool_file_is_kept_aside_and_its_good_part_taken(profile: ProfileStore, damage: str) -> None:
    journal = Journal(profile, Limits())
    other = connect(journal.path, Options())
    with other.transaction("IMMEDIATE"):
        for n in range(3):
            journal.append(turn(f"n{n}"))
        path = journal.spool_held()
    other.close()
    assert path is not None
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[-3:]
    elif damage == "flip":
        data[-5] ^= 0xFF
    else:
        data += b"\xff" * 20
    path.write_bytes(bytes(data))
    journal.ingest_spool()
    assert texts(journal) == (["n0", "n1", "n2"] if damage == "garbage" else ["n0", "n1"])
    assert journal.quarantined == 1
    assert (path.parent / "quarantine" / path.name).read_bytes() == bytes(data)
    assert journal.ingest_spool() == 0
    journal.close()


def test_a_spool_file_whose_removal_was_interrupted_is_not_taken_twice(profile: ProfileStore) -> None:
    journal = Journal(profile, Limits())
    other = connect(journal.path, Options())
    with other.transaction("IMMEDIATE"):
        journal.append(turn("once"))
        path = journal.spool_held()
    other.close()
    assert path is not None
    data = path.read_bytes()
    journal.ingest_spool()
    path.write_bytes(data)  # as if the process had died between the commit and the unlink
    connect(journal.path, Options()).run("INSERT INTO ingested (name) VALUES (?)", (path.name,))
    journal.ingest_spool()
    assert texts(journal) == ["once"]
    journal.close()


def test_the_quota_refuses_and_recovers(profile: ProfileStore) -> None:
    journal = Journal(profile, Limits(max_bytes=1))
    refused = journal.append(turn())
    assert (refused.state, refused.reason, refused.seq) == ("refused", "quota", None)
    journal.close()
    roomy = Journal(profile, Limits(max_bytes=1 << 30))
    assert roomy.append(turn()).state == "journaled"
    roomy.close()


def test_the_free_space_floor_refuses(profile: ProfileStore) -> None:
    journal = Journal(profile, Limits(free_floor=1 << 60))
    assert journal.append(turn()).reason == "full"
    journal.close()


def test_a_closed_journal_says_so(profile: ProfileStore) -> None:
    journal = Journal(profile, Limits())
    journal.close()
    journal.close()
    with pytest.raises(ClosedError):
        journal.append(turn())


def test_cursors_and_dead_letters_survive(profile: ProfileStore, journal: Journal) -> None:
    outbox = Outbox(journal)
    assert outbox.cursor("far") == Cursor(journal.epoch, 0)
    outbox.advance("far", Cursor(journal.epoch, 7))
    outbox.bury("far", 3, "rejected", 1)
    outbox.bury("far", 3, "rejected again", 2)
    assert outbox.cursor("far") == Cursor(journal.epoch, 7)
    assert [(dead.seq, dead.reason) for dead in outbox.dead()] == [(3, "rejected")]
    outbox.advance("far", Cursor("another epoch", 9))
    assert outbox.cursor("far") == Cursor(journal.epoch, 0)


def test_the_barrier_reports_what_is_safe(journal: Journal) -> None:
    journal.append(turn())
    assert journal.synced < journal.last_seq
    assert journal.barrier() == journal.last_seq == journal.synced


@pytest.mark.parametrize("columns", ["event_id = 'text'", "event_id = x'00'", "at = 'x'", "at = -1"])
def test_a_row_that_was_never_written_by_us_is_damage(journal: Journal, columns: str) -> None:
    for _ in range(3):
        journal.append(turn())
    connect(journal.path, Options()).run(f"UPDATE event SET {columns} WHERE seq = 2")
    with pytest.raises(StoreCorrupt, match="log.db is damaged; nothing was deleted"):
        journal.read(0)
    assert [entry.cursor.seq for entry in journal.read(2)] == [3]
    assert journal.append(turn()).state == "journaled"
