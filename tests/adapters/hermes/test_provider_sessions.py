"""What was missed is filled in from the host's transcript, nothing twice: through compactions, restarts, drift, lineage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryd_hermes._turns import Entry, missing_turns, spoken_turns
from tests.adapters.hermes.manager import Rows, agent, events, said, store_of, turns


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def marks(home: Path, word: str) -> list[dict[str, Any]]:
    return [{**event["data"], "session": event["scope"]["session"]} for event in events(store_of(home)) if event.get("mark") == word]


def test_missed_turns_are_filled_in_wherever_they_stood(home: Path) -> None:
    told = [(f"turn {number}", f"answer {number}") for number in range(6)]
    with agent(home) as manager:
        for user, answer in told[1:4]:
            manager.sync_all(user, answer)
        assert manager.flush_pending()
        manager.on_session_end(said(*told))
        manager.on_session_end(said(*told))
    assert sorted(turns(home)) == told
    assert marks(home, "reconciled")[0] | {"session": ""} == {"filled": 3, "told_otherwise": 0, "doubtful": 0, "session": ""}


def test_a_session_of_which_nothing_came_is_filled_in_whole(home: Path) -> None:
    told = [("first", "one"), ("second", "two")]
    with agent(home) as manager:
        manager.on_session_end(said(*told))
    assert turns(home) == told


def test_filled_turns_have_the_time_of_their_rows(home: Path) -> None:
    with agent(home) as manager:
        manager.on_session_end(said(("said in 2025", "ok"), timestamp=1_750_000_000.5))
    assert [event["at"] for event in events(store_of(home)) if event["kind"] == "turn"][0].startswith("2025-06-15")


def test_the_same_words_said_again_are_turns_of_their_own(home: Path) -> None:
    history: Rows = []
    with agent(home) as manager:
        for number in range(4):
            manager.turn(number, "continue", "done", history)
        assert manager.flush_pending()
        manager.on_session_end(history)
    with agent(home) as manager:
        manager.turn(5, "continue", "done", history)
        assert manager.flush_pending()
        manager.on_session_end(history)
    assert turns(home) == [("continue", "done")] * 5


def test_turns_that_wait_in_the_worker_are_not_filled_in_a_second_time(home: Path) -> None:
    told = [(f"turn {number}", f"answer {number}") for number in range(5)]
    with agent(home) as manager:
        manager.on_session_end(said(*told))  # at once, while the worker has not begun
        for user, answer in told:
            manager.sync_all(user, answer)
    assert turns(home) == told


def test_a_turn_whose_answer_still_comes_is_left_to_its_own_call(home: Path) -> None:
    begun = [
        {"role": "user", "content": "look at the log"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [{"id": "1", "function": {"name": "read_file"}}]},
        {"role": "tool", "content": "lines"},
    ]
    with agent(home) as manager:
        manager.on_session_end(begun)
        assert turns_now(manager, home) == []
        manager.sync_all("look at the log", "It is empty.")
    assert turns(home) == [("look at the log", "It is empty.")]


def turns_now(manager: Any, home: Path) -> list[tuple[str, str]]:
    assert manager.flush_pending()
    return turns(home)


def test_turns_that_a_refused_compaction_stopped_are_filled_in(home: Path) -> None:
    """The host's turn failed before it was told: its text is only in the transcript."""
    history = said(("one", "1"), ("two", "2"))
    with agent(home) as manager:
        manager.sync_all("one", "1")
        manager.sync_all("two", "2")
        history += [{"role": "user", "content": "refused once"}, {"role": "user", "content": "refused twice"}, *said(("three", "3"))]
        manager.sync_all("three", "3")
        assert manager.flush_pending()
        manager.on_session_end(history)
    assert sorted(turns(home)) == sorted([("one", "1"), ("two", "2"), ("refused once", ""), ("refused twice", ""), ("three", "3")])


def test_compactions_in_place_double_nothing(home: Path) -> None:
    history: Rows = []
    with agent(home) as manager:
        for number in range(12):
            manager.turn(number, f"turn {number}", f"answer {number}", history)
            if number % 4 == 3:
                assert manager.flush_pending()
                history, _ = manager.compact(history, required=False, keep=4)
        assert manager.flush_pending()
        manager.on_session_end(history)
    assert turns(home) == [(f"turn {number}", f"answer {number}") for number in range(12)]
    assert [mark["parent"] for mark in marks(home, "compaction")] == ["s1"] * 3


def test_compactions_that_change_the_session_double_nothing_and_say_where_it_came_from(home: Path) -> None:
    history: Rows = []
    with agent(home, "s0") as manager:
        for number in range(9):
            manager.turn(number, f"turn {number}", f"answer {number}", history)
            if number in (3, 6):
                assert manager.flush_pending()
                history, _ = manager.compact(history, required=False, keep=4, new_session_id=f"s{number}")
        assert manager.flush_pending()
        manager.on_session_end(history)
    with agent(home, "s6") as manager:
        manager.on_session_end(history)
    assert turns(home) == [(f"turn {number}", f"answer {number}") for number in range(9)]
    assert [(mark["parent"], mark["session"]) for mark in marks(home, "compaction")] == [("s0", "s3"), ("s3", "s6")]


def test_a_turn_of_the_old_session_that_comes_late_stays_there(home: Path) -> None:
    with agent(home, "s1") as manager:
        provider = manager.provider
        provider.sync_turn("one", "1", session_id="s1")
        provider.on_session_switch("s2", parent_session_id="s1", reason="compression")
        provider.sync_turn("late", "2", session_id="s1")
        provider.sync_turn("three", "3", session_id="s2")
    found = [(event["scope"]["session"], event["user"]) for event in events(store_of(home)) if event["kind"] == "turn"]
    assert found == [("s1", "one"), ("s1", "late"), ("s2", "three")]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        ({"parent_session_id": "s1", "reason": "branch"}, "branch"),
        ({"parent_session_id": "s1", "reason": "resume"}, "resume"),
        ({"parent_session_id": "s1", "reset": True, "reason": "new_session"}, "reset"),
        ({"parent_session_id": "", "rewound": True}, "rewind"),
        ({"parent_session_id": "s1"}, "switch"),
    ],
)
def test_how_a_session_came_from_another_is_kept(home: Path, call: dict[str, Any], word: str) -> None:
    with agent(home, "s1") as manager:
        manager.sync_all("one", "1")
        manager.on_session_switch("s1" if word == "rewind" else "s2", **call)
    assert marks(home, word) == [{"parent": "s1", "reason": call.get("reason", ""), "session": "s1" if word == "rewind" else "s2"}]


def test_a_branch_has_the_turns_of_its_parent_already_and_a_new_session_does_not(home: Path) -> None:
    copied = said(("one", "1"), ("two", "2"))
    with agent(home, "s1") as manager:
        manager.on_session_end(copied)
        manager.on_session_switch("b1", parent_session_id="s1", reason="branch")
        manager.on_session_end([*copied, *said(("three", "3"))])
        assert [user for user, _ in turns(home)] == ["one", "two", "three"]
        manager.new_session([], "n1")
        assert manager.flush_pending()
        manager.on_session_end(said(("one", "1")))
    assert [user for user, _ in turns(home)] == ["one", "two", "three", "one"]


def test_a_new_session_ends_the_old_one_in_order(home: Path) -> None:
    history = said(("one", "1"))
    with agent(home, "s1") as manager:
        manager.sync_all("one", "1", messages=history)
        manager.new_session(history + said(("missed", "2")), "s2")
        manager.sync_all("three", "3")
    found = [(event["scope"]["session"], event["user"]) for event in events(store_of(home)) if event["kind"] == "turn"]
    assert found == [("s1", "one"), ("s1", "missed"), ("s2", "three")]


def test_a_turn_that_a_killed_host_never_told_is_filled_in_by_the_next_one(home: Path) -> None:
    with agent(home) as manager:
        manager.sync_all("one", "1")
    resumed = said(("one", "1"), ("lost with the process", "2"), ("three", "3"))
    with agent(home) as manager:
        manager.sync_all("three", "3")
        assert manager.flush_pending()
        manager.on_session_end(resumed)
    assert sorted(turns(home)) == [("lost with the process", "2"), ("one", "1"), ("three", "3")]


@pytest.mark.parametrize("resumed", [False, True], ids=["same-process", "resumed"])
def test_a_row_that_the_host_masks_later_is_the_turn_that_it_was(home: Path, resumed: bool) -> None:
    told = [("my key is sk-proj-1234", "Noted."), ("and the host is kestrel", "ok")]
    masked = said(("my key is sk-pro...1234", "Noted."), ("and the host is kestrel", "ok"), ("three", "3"))
    with agent(home) as manager:
        for user, answer in told:
            manager.sync_all(user, answer)
        assert manager.flush_pending()
        if not resumed:
            manager.on_session_end(masked)
            assert manager.provider.status()["told_otherwise"] == 1
    if resumed:
        with agent(home) as manager:
            manager.on_session_end(masked)
            assert manager.provider.status()["told_otherwise"] == 1
    assert turns(home) == [*told, ("three", "3")]


def test_rows_that_the_host_merged_are_not_a_new_turn(home: Path) -> None:
    with agent(home) as manager:
        for number in range(3):
            manager.sync_all(f"turn {number}", f"answer {number}")
        assert manager.flush_pending()
        manager.on_session_end(said(("turn 0\n\nturn 1", "answer 1"), ("turn 2", "answer 2")))
    assert len(turns(home)) == 3


def test_the_hosts_ids_settle_what_words_do_not(home: Path) -> None:
    with agent(home) as manager:
        manager.sync_all("expanded by the host", "ok", messages=said(("expanded by the host", "ok"), message_uid="a" * 32))
        assert manager.flush_pending()
        row = {"role": "user", "content": "/skill told otherwise", "message_uid": "b" * 32, "_absorbed_message_uids": ["a" * 32]}
        manager.on_session_end([row, {"role": "assistant", "content": "ok"}, *said(("missed", "2"))])
    assert turns(home) == [("expanded by the host", "ok"), ("missed", "2")]


def test_in_doubt_nothing_is_added_and_it_is_counted(home: Path) -> None:
    with agent(home) as manager:
        manager.sync_all("one", "1")
        assert manager.flush_pending()
        manager.on_session_end(said(("told otherwise", "1"), ("or was it missed?", "2")))
        assert manager.provider.status()["doubtful"] == 2
    assert turns(home) == [("one", "1")]
    assert marks(home, "reconciled") == [{"filled": 0, "told_otherwise": 0, "doubtful": 2, "session": "s1"}]


def test_summaries_notices_and_tools_are_no_turns(home: Path) -> None:
    rows = [
        {"role": "system", "content": "You are an agent"},
        {"role": "user", "content": "[CONTEXT COMPACTION] so far", "_compressed_summary": True},
        *said(("one", "1")),
        {"role": "tool", "content": "lines"},
        {"role": "assistant", "content": "   ", "tool_calls": [{}]},
        {"role": "assistant", "content": "1, to be sure"},
    ]
    with agent(home) as manager:
        manager.on_session_end(rows)
    assert turns(home) == [("one", "1, to be sure")]


def test_a_transcript_in_parts_is_the_turn_that_was_told_as_text(home: Path) -> None:
    parts = [{"type": "text", "text": "what is on the picture?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
    with agent(home) as manager:
        manager.sync_all("what is on the picture?", "A cat.")
        assert manager.flush_pending()
        manager.on_session_end([{"role": "user", "content": parts}, {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]}])
    assert turns(home) == [("what is on the picture?", "A cat.")]


def test_what_is_known_of_a_session_holds_no_word_of_it(home: Path) -> None:
    with agent(home) as manager:
        manager.turn(1, "an unmistakable sentence", "an unmistakable answer", [])
    kept = b"".join(path.read_bytes() for path in (store_of(home) / "hermes").iterdir())
    assert b"unmistakable" not in kept and kept
    assert all(path.stat().st_mode & 0o077 == 0 for path in (store_of(home) / "hermes").iterdir())


def test_without_what_is_known_of_a_session_nothing_is_doubled(home: Path) -> None:
    history = said(("one", "1"), ("two", "2"), ("one", "1 again"))
    with agent(home) as manager:
        manager.on_session_end(history)
    for path in (store_of(home) / "hermes").glob("*.jsonl"):
        path.write_bytes(b'{"half a line')
    with agent(home) as manager:
        manager.on_session_end([*history, *said(("three", "3"))])
    assert [user for user, _ in turns(home)] == ["one", "two", "one", "three"]


# -- the comparison itself ----------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abcde"), max_size=12), st.data())
@settings(max_examples=150, deadline=None)
def test_a_transcript_that_the_record_has_misses_nothing(words: list[str], data: st.DataObject) -> None:
    """Also from any place on, as after a compaction, and in whatever order the record was made."""
    start = data.draw(st.integers(0, len(words)))
    recorded = data.draw(st.permutations(words))
    gaps = missing_turns([Entry(word) for word in recorded], [Entry(word) for word in words[start:]])
    assert (gaps.missing, gaps.told_otherwise, gaps.doubtful) == ((), 0, 0)


@given(st.lists(st.integers(0, 1000), unique=True, max_size=12), st.data())
@settings(max_examples=150, deadline=None)
def test_exactly_what_was_missed_is_missing(words: list[int], data: st.DataObject) -> None:
    missed = {word for word in words if data.draw(st.booleans())}
    recorded = [Entry(str(word)) for word in words if word not in missed]
    gaps = missing_turns(recorded, [Entry(str(word)) for word in words])
    assert [words[place] for place, _ in gaps.missing] == [word for word in words if word in missed]
    assert gaps.told_otherwise == gaps.doubtful == 0


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.booleans()), max_size=12))
@settings(max_examples=150, deadline=None)
def test_a_record_is_never_doubled_by_what_is_told_otherwise(rows: list[tuple[int, bool, bool]]) -> None:
    """However rows drift: what is added is at most what the record lacks in number."""
    recorded = [Entry(str(word)) for word, known, _ in rows if known]
    told = [Entry(f"{word}'" if drifted else str(word)) for word, _, drifted in rows]
    assert len(missing_turns(recorded, told).missing) <= len(told) - min(len(recorded), len(told)) or not recorded


def test_odd_rows_are_no_turns() -> None:
    assert spoken_turns([None, 3, "x", {"role": "assistant", "content": "before anybody spoke"}, {"content": "y"}]) == []
