"""The packed arrays of a page say what was put into them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryd.checkpoint._pages import (
    ASSISTANT,
    DEGRADED,
    ERASED,
    EVIDENCE,
    OWN,
    USER,
    Digests,
    common_rows,
    count_rows,
    pack_places,
    root_of,
    unpack_places,
)

rows = st.lists(st.sampled_from([bytes([n]) * 32 for n in range(3)]), max_size=20)


@given(rows, rows, rows)
def test_common_rows_are_counted_from_the_start(start: list[bytes], left: list[bytes], right: list[bytes]) -> None:
    expected = len(start)
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        expected += 1
    assert common_rows(b"".join(start + left), b"".join(start + right)) == expected


places = st.tuples(st.integers(1, 2**63), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))


@given(st.lists(places, max_size=20))
def test_places_come_back(given_places: list[tuple[int, int, int]]) -> None:
    assert [tuple(place) for place in unpack_places(pack_places(given_places))] == given_places


def test_a_pack_of_one_s_own_gets_its_number() -> None:
    assert list(unpack_places(pack_places([(OWN, 3, 4), (9, 1, 2)], 7))) == [(7, 3, 4), (9, 1, 2)]


def test_flags_are_counted_by_bit() -> None:
    flags = bytes([USER, ASSISTANT, 0, DEGRADED, USER | ERASED, ERASED])
    assert [count_rows(flags, mask) for mask in (EVIDENCE, DEGRADED, ERASED)] == [3, 1, 2]


def test_chains_begin_apart_and_each_digest_has_its_purpose() -> None:
    digests = Digests.of(b"k" * 32)
    owners = [(b"a", b"bc", 0), (b"ab", b"c", 0), (b"a", b"bc", 1)]
    assert len({root_of(digests, *owner).digest for owner in owners}) == 3
    functions = (digests.row, digests.page, digests.pack, digests.identity, digests.node, digests.root, digests.checkpoint)
    assert len({function(b"x") for function in functions}) == 7
