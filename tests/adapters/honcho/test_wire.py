"""What is sent can be read back exactly, and nothing of it stops a server; ids are never the same for two names."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.core import Scope
from memoryd_honcho._names import Names
from memoryd_honcho._wire import MOST_CHARACTERS, escape, pieces, unescape

TOKENS = ("<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
GAP = "\u200b"
PARTS = [*TOKENS, "<", "{", "}", GAP, "|endoftext|>", "0000}", "d83d", "\0", "\ud83d", "\udc88", " ", "\n", "x", f"<{GAP}|endoftext|>", f"{{{GAP}0000}}"]
hostile = st.lists(st.sampled_from(PARTS), max_size=12).map("".join) | st.text(st.characters(exclude_categories=()))


@given(hostile)
def test_escaping_is_undone_exactly(text: str) -> None:
    sent = escape(text)
    assert unescape(sent) == text
    assert not any(token in sent for token in TOKENS)
    assert "\0" not in sent
    sent.encode("utf-8")
    assert not text or sent.strip(), "the SDK refuses white space alone"


@pytest.mark.parametrize("text", ["a" * 30_000, "ab" * 20_000, "😀" * 12_000, "\0" * 20_000, "\0\ud800" * 9_000, "word " * 9_000, "x", "é\n" * 8_001])
def test_pieces_join_byte_for_byte_and_are_small(text: str) -> None:
    cut = pieces(text)
    assert "".join(map(unescape, cut)) == text
    assert max(map(len, cut)) <= 3 * MOST_CHARACTERS


def test_long_runs_are_cut_smaller() -> None:
    assert max(map(len, pieces("😀" * 25_000))) == 1000


def test_no_text_gives_no_piece() -> None:
    assert pieces("") == []


USERS = ["ann", "Ann", "a.b", "a-b", "a:b", "a b", "*", "in", "\u00e9", "e\u0301", "😀", "\0", "\ud83d", "x" * 500, "x" * 499, "ann\0s1"]


def test_ids_are_injective_and_fit() -> None:
    names = Names(b"k" * 32, {})
    ids = [kind(user) for user in USERS for kind in (names.user, names.peer)]
    ids += [names.thread(user, session) for user in USERS for session in (None, *USERS)]
    ids += [names.memory(user, key) for user, key in combinations(USERS, 2)] + [names.memory(key, user) for user, key in combinations(USERS, 2)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,512}", id) for id in ids)


def test_another_profile_has_other_ids() -> None:
    one, other = Names(b"k" * 32, {}), Names(b"l" * 32, {})
    assert one.user("ann") != other.user("ann")
    assert one.thread("ann", "s") != other.thread("ann", "s")
    assert one.memory("ann", "key") != other.memory("ann", "key")


def test_labels_are_digests_and_each_its_own() -> None:
    names = Names(b"k" * 32, {})
    found = names.labels_of(Scope(agent="x", workspace="x"))
    assert set(found) == {"a", "w"}
    assert found["a"] != found["w"]
    assert names.labels({"agent": "x", "unknown": "y"}) == {"a": found["a"]}


def test_an_operator_may_choose_peers() -> None:
    names = Names(b"k" * 32, {"ann": "ann-at-work"})
    assert names.peer("ann") == "ann-at-work"
    assert names.peer("bob") == f"u-{names.user('bob')}"
