"""Random lives of a session: turns told and missed, compactions, restarts, agents made to compact.  Nothing is ever doubled, what was told is
never lost, and what was missed is filled in wherever its words say which turn it is."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from memoryd_hermes import MemorydProvider
from tests.adapters.hermes.manager import Manager, Rows, said, turns


class Life:
    """One session of a host, with what was said and what of it the provider was told."""

    def __init__(self, home: Path, seed: int) -> None:
        self.home = home
        self.random = random.Random(seed)
        self.history: Rows = []
        self.told: Counter[tuple[str, str]] = Counter()
        self.missed: Counter[tuple[str, str]] = Counter()
        self.session = "s0"
        self.manager = self.agent()

    def agent(self) -> Manager:
        manager = Manager(contexts=self.random.random() < 0.7)
        manager.register_memory_provider(MemorydProvider())
        manager.initialize_all(self.session, hermes_home=str(self.home), platform="cli", agent_context="primary")
        return manager

    def turn(self) -> None:
        number = sum(self.told.values()) + sum(self.missed.values())
        turn = ("continue" if self.random.random() < 0.25 else f"turn {number}", f"answer {number}")
        self.history += said(turn)
        if self.random.random() < 0.8:
            self.told[turn] += 1
            self.manager.sync_all(*turn, messages=list(self.history) if self.random.random() < 0.5 else None)
        else:
            self.missed[turn] += 1

    def end(self) -> None:
        self.manager.on_session_end(list(self.history))

    def compact(self) -> None:
        self.manager.flush_pending()
        keep = self.random.choice([2, 4, 6])
        if len(self.history) > keep:
            after = self.random.choice(["", f"s{len(self.history)}{sum(self.told.values())}"])
            self.history, _ = self.manager.compact(self.history, required=True, keep=keep, new_session_id=after)
            self.session = self.manager.session

    def restart(self) -> None:
        self.shutdown()
        self.manager = self.agent()

    def made_to_compact(self) -> None:
        other = self.agent()
        other.on_session_end(list(self.history))
        other.shutdown_all()

    def shutdown(self) -> None:
        self.manager.shutdown_all()
        assert self.manager.errors == []


def live(home: Path, seed: int) -> Life:
    life = Life(home, seed)
    steps = [life.turn] * 12 + [life.end, life.compact, life.compact, life.restart, life.made_to_compact]
    for _ in range(life.random.randint(5, 25)):
        life.random.choice(steps)()
    life.end()
    life.shutdown()
    return life


def check(home: Path, seeds: range) -> None:
    missed = filled = 0
    for seed in seeds:
        place = home / str(seed)
        place.mkdir()
        life = live(place, seed)
        found = Counter(turns(place))
        assert found - life.told - life.missed == Counter(), f"seed {seed}: doubled"
        assert life.told - found == Counter(), f"seed {seed}: lost"
        unmistakable = {turn for turn in life.missed if turn[0] != "continue"}
        missed += len(unmistakable)
        filled += len(unmistakable & set(found))
    assert filled >= 0.9 * missed  # what is left is in doubt: other turns around it have the same words


def test_random_lives(tmp_path: Path) -> None:
    check(tmp_path, range(12))


@pytest.mark.soak
def test_many_random_lives(tmp_path: Path) -> None:
    check(tmp_path, range(12, 400))
