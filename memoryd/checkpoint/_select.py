"""Which rows a forget means: a pure walk over the pages of one chain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import attrs

from memoryd.checkpoint._pages import EVIDENCE, USER, Digests, Page
from memoryd.core import Value

__all__ = ["Erasure", "TurnMatches", "in_time", "match_turns"]


@attrs.frozen(slots=True, eq=False, repr=False)
class Erasure(Value):
    """Rows of ``user`` that match all given parts.

    ``session`` None means every session.  ``turns`` are the identities of turns (:meth:`Archive.identities_of_turn`); None means every
    row.  ``since`` and ``until`` (exclusive; microseconds since the epoch) are about when a row was first archived: give the time of
    the forget as ``until``, and repeating it later leaves newer rows alone.
    """

    user: str
    session: str | None = None
    turns: tuple[tuple[bytes, ...], ...] | None = None
    since: int | None = None
    until: int | None = None

    @property
    def everything(self) -> bool:
        """True where all rows go, those before the first evidence too."""
        return (self.turns, self.since, self.until) == (None, None, None)


@attrs.frozen(slots=True, eq=False, repr=False)
class TurnMatches(Value):
    """``nodes`` to erase, and how often the same words stand elsewhere in the chain."""

    nodes: frozenset[bytes]
    quoted: int


def in_time(erasure: Erasure, created: int) -> bool:
    return (erasure.since is None or created >= erasure.since) and (erasure.until is None or created < erasure.until)


_Open: TypeAlias = dict[int, tuple[bytes, ...]]
"""For each turn whose user row was the latest one: the nodes since then."""


def match_turns(digests: Digests, pages: Sequence[Page], turns: Sequence[tuple[bytes, ...]]) -> TurnMatches:
    """Find each turn: its user row, and everything up to its assistant row, before the next user row.

    A turn that is nowhere complete (the host split the answer, or the session ended before it) is found by either of its rows.
    """
    return _Matcher(digests, pages, turns).run()


class _Matcher:
    def __init__(self, digests: Digests, pages: Sequence[Page], turns: Sequence[tuple[bytes, ...]]) -> None:
        self._digests = digests
        self._turns = turns
        self._children: dict[int, list[Page]] = defaultdict(list)
        for page in pages:
            self._children[page.parent].append(page)
        self._whole: dict[int, set[bytes]] = defaultdict(set)
        self._single: dict[int, set[bytes]] = defaultdict(set)

    def run(self) -> TurnMatches:
        pending: list[tuple[Page, dict[int, tuple[bytes, ...]]]] = [(page, {}) for page in self._children[0]]
        while pending:
            page, open_turns = pending.pop()
            pending += self._scan(page, open_turns)
        chosen: set[bytes] = set()
        for index in range(len(self._turns)):
            chosen |= self._whole[index] or self._single[index]
        seen = set[bytes]().union(*self._single.values()) if self._single else set()
        return TurnMatches(frozenset(chosen), len(seen - chosen))

    def _scan(self, page: Page, opened: _Open) -> Iterator[tuple[Page, _Open]]:
        forks: dict[int, list[Page]] = defaultdict(list)
        for child in self._children[page.id]:
            forks[child.at].append(child)
        for index, flag in enumerate(page.flags):
            if flag & EVIDENCE:
                opened = self._look(page, index, flag, opened)
            for child in forks.get(index + 1, ()):
                yield child, opened

    def _look(self, page: Page, index: int, flag: int, opened: _Open) -> _Open:
        before, node = page.node_at(index - 1), page.node_at(index)
        still = {} if flag & USER else {turn: (*nodes, node) for turn, nodes in opened.items()}
        for number, identities in enumerate(self._turns):
            for place, identity in enumerate(identities):
                if self._digests.node(before, identity) != node:
                    continue
                self._single[number].add(node)
                if place == 0 and len(identities) > 1:
                    still[number] = (node,)
                elif number in still or len(identities) == 1:
                    self._whole[number].update(still.get(number, (node,)))
        return still
