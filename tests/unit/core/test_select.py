"""Which events a forget means, over a log in order."""

from __future__ import annotations

import pytest

from memoryd.core import (
    Cursor,
    Deletion,
    Edit,
    Entry,
    Erased,
    Event,
    Forget,
    MemoryWrite,
    Scope,
    Selection,
    Selector,
    SessionMark,
    Turn,
    new_event_id,
)
from memoryd.errors import InvalidInput

ADA, BOB = Scope(user="ada", session="s1"), Scope(user="bob", session="s1")
TURN = Turn(new_event_id(), ADA, 10, "hi", "ho")
LOG: list[Event] = [
    TURN,  # 1
    Turn(new_event_id(), Scope(user="ada", session="s2"), 20, "second", ""),  # 2
    Turn(new_event_id(), BOB, 10, "hi", "ho"),  # 3
    MemoryWrite(new_event_id(), ADA, 30, "k", "v1"),  # 4
    MemoryWrite(new_event_id(), ADA, 40, "other", "v"),  # 5
    Deletion(new_event_id(), ADA, 50, "k"),  # 6
    Edit(new_event_id(), Scope(user="ada"), 60, TURN.event_id, "hello"),  # 7
    SessionMark(new_event_id(), ADA, 70, "end"),  # 8
    Forget(new_event_id(), ADA, 80),  # 9
    Erased(new_event_id(), 90),  # 10
]


def seqs(selector: Selector) -> tuple[int, ...]:
    selection = Selection(selector)
    selection.scan(Entry(Cursor("e", seq), event) for seq, event in enumerate(LOG, start=1))
    return selection.seqs


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (Selector("ada", ids=frozenset({TURN.event_id})), (1, 7)),
        (Selector("bob", ids=frozenset({TURN.event_id})), ()),
        (Selector("ada", key="k"), (4, 6)),
        (Selector("ada", session="s1"), (1, 4, 5, 6, 7, 8)),
        (Selector("ada", session="s2"), (2,)),
        (Selector("ada", since=20, until=40), (2, 4)),
        (Selector("ada", everything=True), (1, 2, 4, 5, 6, 7, 8)),
        (Selector("bob", everything=True), (3,)),
        (Selector("nobody", everything=True), ()),
    ],
)
def test_selectors(selector: Selector, expected: tuple[int, ...]) -> None:
    assert seqs(selector) == expected


def test_forgetting_nothing_in_particular_is_refused() -> None:
    with pytest.raises(InvalidInput, match="everything=True"):
        Selector("ada")
