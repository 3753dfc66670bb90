"""Applying events one by one, and projecting the log that a forget has left, give the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryd.core import Cursor, Deletion, Edit, Entry, Erased, Event, Forget, MemoryWrite, Query, Scope, Turn
from memoryd_local import LocalBackend
from tests.adapters.local.conftest import backend_in

WORDS = ("apple", "pear", "plum", "fig")
KEYS = ("k1", "k2")
SESSIONS = ("s1", "s2")
STEPS = st.lists(
    st.tuples(st.sampled_from(["turn", "turn", "write", "write", "delete", "edit", "forget", "session"]), st.integers(0, 7), st.integers(0, 3)),
    min_size=1, max_size=14,
)


def events_of(steps: Sequence[tuple[str, int, int]]) -> list[Event]:
    """A log of these steps; numbers choose among what there is."""
    events: list[Event] = []
    for seq, (kind, which, word) in enumerate(steps, 1):
        events.append(event_of(kind, which, WORDS[word], seq, events))
    return events


def event_of(kind: str, which: int, word: str, seq: int, before: Sequence[Event]) -> Event:
    scope, event_id = Scope(user="ada", session=SESSIONS[which % 2], agent="kim"), seq.to_bytes(16, "big")
    turns = [event for event in before if isinstance(event, Turn)]
    match kind:
        case "write":
            return MemoryWrite(event_id, scope, seq, KEYS[which % 2], f"{word} value{seq}")
        case "delete":
            return Deletion(event_id, scope, seq, KEYS[which % 2])
        case "edit" if turns:
            texts = {"user": f"{word} edited{seq}"} if which % 2 else {"assistant": f"{word} edited{seq}" if which % 3 else ""}
            return Edit(event_id, scope, seq, turns[which % len(turns)].event_id, **texts)
        case "forget" if before:
            return Forget(event_id, scope, seq, with_edits((which % len(before) + 1,), before))
        case "session":
            targets = [n for n, event in enumerate(before, 1) if not isinstance(event, Forget) and event.scope.session == scope.session]  # type: ignore[union-attr]
            return Forget(event_id, scope, seq, with_edits(targets, before), (SESSIONS[which % 2],))
        case _:
            return Turn(event_id, scope, seq, f"{word} said{seq}", f"answer{seq} {word}" if which % 3 else "")


def with_edits(targets: Sequence[int], before: Sequence[Event]) -> tuple[int, ...]:
    """A forgotten turn takes its edits along, as the runtime does it."""
    gone = {before[seq - 1].event_id for seq in targets}
    edits = {seq for seq, event in enumerate(before, 1) if isinstance(event, Edit) and event.target in gone}
    return tuple(sorted(edits | set(targets)))


def erased(events: Sequence[Event]) -> list[Event]:
    """The log with the payloads of what was forgotten erased; a forget itself stays."""
    gone = {seq for event in events if isinstance(event, Forget) for seq in event.targets}
    return [
        Erased(event.event_id, event.at) if seq in gone and not isinstance(event, Forget) else event for seq, event in enumerate(events, 1)
    ]


async def shown(home: Path, events: Sequence[Event], batch: int) -> dict[str, Any]:
    """What a user sees after these events, applied ``batch`` at a time."""
    backend = backend_in(home)
    await backend.open()
    try:
        entries = [Entry(Cursor("e", seq), event) for seq, event in enumerate(events, 1)]
        for start in range(0, len(entries), batch):
            await backend.apply(entries[start : start + batch])
        await backend.check_index()
        return await seen(backend)
    finally:
        await backend.aclose()


async def seen(backend: LocalBackend) -> dict[str, Any]:
    """What is there, not how it ranks: in a session, lines that stood around a forgotten turn count as further apart than in a log made
    anew, which may change the best line of a turn."""
    found = {word: await backend.recall(Query("ada", word, limit=100)) for word in WORDS}
    ids = sorted({hit.id for hits in found.values() for hit in hits})
    return {
        "recall": {word: sorted((hit.id, str(hit.valid_until)) for hit in hits) for word, hits in found.items()},
        "texts": [getattr(await backend.find("ada", id), "text", None) for id in ids],
        "memories": await backend.list_memories("ada"),
        "history": {key: await backend.history("ada", key) for key in KEYS},
        "turns": (await backend.counts())["turns"],
    }


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, batch=st.sampled_from([1, 3, 100]))
def test_step_by_step_and_from_the_erased_log_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]], batch: int
) -> None:
    events = events_of(steps)
    one = trio.run(shown, tmp_path_factory.mktemp("steps"), events, batch)
    other = trio.run(shown, tmp_path_factory.mktemp("anew"), erased(events), 100)
    assert one == other
