"""The unprojected tail: what the log has and no index yet; and merging it with what was found."""

from __future__ import annotations

import attrs

from memoryd.core import (
    Cursor,
    Deletion,
    Edit,
    Entry,
    Event,
    Forget,
    Hit,
    MemoryWrite,
    Query,
    Scope,
    Turn,
    from_micros,
    new_event_id,
)
from memoryd.recall import merge, scan_tail

SCOPE = Scope(user="ada", session="s1", agent="kim")


def log(*events: Event) -> list[Entry]:
    return [Entry(Cursor("e", seq), event) for seq, event in enumerate(events, 11)]


def turn(user: str, assistant: str = "", scope: Scope = SCOPE, at: int = 5) -> Turn:
    return Turn(new_event_id(), scope, at, user, assistant, turn_id="t")


def write(key: str, value: str, at: int = 5) -> MemoryWrite:
    return MemoryWrite(new_event_id(), SCOPE, at, key, value)


def texts(entries: list[Entry], text: str, **options: object) -> list[str]:
    return [hit.text for hit in scan_tail(entries, Query("ada", text, **options))]  # type: ignore[arg-type]


def test_a_turn_and_a_memory_are_found() -> None:
    said = turn("the kayak is red", "noted")
    entries = log(said, write("boat", "a red kayak"), turn("something else", scope=attrs.evolve(SCOPE, session="s2")))
    hits = scan_tail(entries, Query("ada", "red kayak"))
    assert {hit.text for hit in hits[:2]} == {"the kayak is red", "a red kayak"}
    found = next(hit for hit in hits if hit.kind == "turn")
    assert (found.id, found.seq, found.turn_id, found.role, found.session) == (said.event_id.hex(), 11, "t", "user", "s1")
    assert found.labels == {"agent": "kim"}


def test_later_entries_count() -> None:
    said = turn("old words")
    assert texts(log(said, Edit(new_event_id(), SCOPE, 6, said.event_id, user="new words")), "words")[0] == "new words"
    assert texts(log(write("k", "value"), Deletion(new_event_id(), SCOPE, 6, "k")), "value") == []
    assert texts(log(said, Forget(new_event_id(), SCOPE, 6, (11,))), "words") == []


def test_scope_labels_and_time_narrow() -> None:
    entries = log(turn("kayak one", at=5), turn("kayak two", scope=attrs.evolve(SCOPE, session="s2"), at=9), turn("kayak three", scope=Scope(user="bob")))
    assert set(texts(entries, "kayak")) == {"kayak one", "kayak two"}
    assert texts(entries, "kayak", session="s2") == ["kayak two"]
    assert texts(entries, "kayak", as_of=5) == ["kayak one"]
    assert texts(entries, "kayak", labels={"agent": "lee"}) == []
    assert texts(entries, "kayak", limit=1) == ["kayak two"]
    assert texts(entries, "") == []
    assert texts([], "kayak") == []


def test_quotations_hold_in_the_tail() -> None:
    entries = log(turn("docker networking"), turn("networking docker", scope=attrs.evolve(SCOPE, session="s2")))
    assert texts(entries, '"docker networking"') == ["docker networking"]


def hit(id: str, text: str, score: float, **options: object) -> Hit:
    return Hit(id=id, kind="turn", text=text, score=score, at=from_micros(1), source="x", **options)  # type: ignore[arg-type]


def test_merging_keeps_each_event_once_best_first() -> None:
    merged = merge([[hit("1", "one", 3.0), hit("2", "two", 1.0)], [hit("2", "two", 2.0), hit("3", "three", 0.5)]], 2)
    assert [(one.id, one.score, one.copies) for one in merged] == [("1", 3.0, 1), ("2", 2.0, 1)]


def test_merging_folds_equal_texts_of_different_events() -> None:
    merged = merge([[hit("1", "Same  text", 3.0)], [hit("2", "same text", 4.0)]], 10)
    assert [(one.id, one.copies) for one in merged] == [("2", 2)]


def test_merging_marks_the_value_that_a_newer_one_replaces() -> None:
    old = attrs.evolve(hit("1", "teal", 9.0, key="colour", seq=1), kind="memory")
    new = attrs.evolve(hit("2", "navy", 1.0, key="colour", seq=7), kind="memory", at=from_micros(70))
    merged = merge([[old], [new]], 10)
    assert [(one.text, one.superseded, one.valid_until) for one in merged] == [("navy", False, None), ("teal", True, from_micros(70))]
