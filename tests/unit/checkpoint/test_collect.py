"""Collection never takes what a checkpoint reaches, whatever was archived, cut, forked, forgotten or collected before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from memoryd.checkpoint import Archive, Erasure
from memoryd.core import canonical_bytes
from memoryd.errors import DeadlineExceeded
from memoryd.store import ProfileStore

Upsert = Callable[..., Any]
NOW = 10**15


def rows(chance: Random, count: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant", "tool")
    return [{"role": chance.choice(roles), "content": f"{chance.randrange(40)} " * chance.randrange(1, 400)} for _ in range(count)]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_reached_stays(archive: Archive, upsert: Upsert, seed: int) -> None:
    chance = Random(seed)
    sessions: dict[str, list[dict[str, Any]]] = {name: rows(chance, 20) for name in ("a", "b", "c")}
    receipts: dict[tuple[str, int], tuple[str, list[dict[str, Any]]]] = {}
    for step in range(40):
        name = chance.choice("abc")
        given = sessions[name]
        match chance.randrange(6):
            case 0 | 1:
                given += rows(chance, chance.randrange(30))
            case 2:
                del given[chance.randrange(len(given)) :]
                given += rows(chance, 5)
            case 3 if given:
                given[chance.randrange(len(given))] = rows(chance, 1)[0]
            case 4:
                with suppress(DeadlineExceeded):
                    upsert(rows(chance, 3000), session=name, seconds=0.005, at=step)
            case _:
                archive.collect(at=NOW, spare_s=0)
        given = sessions[name] = given or rows(chance, 5)
        receipt = upsert(given, session=name, at=step)
        receipts[receipt.id, receipt.attempt] = (name, list(given))
    archive.collect(at=NOW, spare_s=0)
    assert archive.verify().ok
    for (id, attempt), (_, given) in receipts.items():
        assert archive.restore(id, attempt=attempt).rows == tuple(map(canonical_bytes, given))


@pytest.mark.parametrize("seed", range(3))
def test_what_a_forget_leaves_stays(archive: Archive, upsert: Upsert, seed: int) -> None:
    chance = Random(seed)
    shared = rows(chance, 200)  # the same bytes in sessions of their own: packs are shared
    kept = upsert(shared, session="kept", at=1)
    gone = upsert(shared, session="gone", at=1)
    archive.erase(Erasure("u", "gone", until=5))
    assert archive.collect(at=NOW, spare_s=0).pages >= 0
    assert archive.restore(kept.id).rows == tuple(map(canonical_bytes, shared))
    assert archive.restore(gone.id).erased == len(shared)
    assert archive.verify().ok


def test_collecting_beside_somebody_who_archives(archive: Archive, profile: ProfileStore) -> None:
    chance, stop, done = Random(1), threading.Event(), []

    def work() -> None:
        with Archive.open(profile) as other:
            given: list[dict[str, Any]] = []
            while not stop.is_set():
                given += rows(chance, 20)
                receipt = other.upsert(given, user="u", session="s", host="", trigger="", at=1, deadline=time.monotonic() + 30)
                done.append((receipt.id, list(given)))

    thread = threading.Thread(target=work)
    thread.start()
    while len(done) < 30 and thread.is_alive():
        archive.collect(at=NOW, spare_s=0)
    stop.set()
    thread.join()
    assert archive.verify().ok
    for id, given in done:
        assert archive.restore(id).rows == tuple(map(canonical_bytes, given))
