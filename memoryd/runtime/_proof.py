"""A real write now and then: of what was only read, or written long ago, nobody says that it is well."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import attrs

from memoryd.core import HistoryBackend, Value
from memoryd.errors import MemorydError, StoreError
from memoryd.journal import Journal

__all__ = ["Proof", "Proofs", "prove_local", "prove_log"]

_LASTS = 10.0  # seconds


@attrs.frozen(slots=True, eq=False, repr=False)
class Proof(Value):
    """What a write ended in: ``error`` is its class, empty where it succeeded."""

    error: str = ""
    detail: str = ""


class Proofs:
    """The latest of each store.  One that succeeded counts for ten seconds; one that failed is tried again at each look."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[float, Proof]] = {}

    async def get(self, name: str, write: Callable[[], Awaitable[Proof]]) -> Proof:
        at, proof = self._latest.get(name, (0.0, Proof("none yet")))
        if proof.error or time.monotonic() - at >= _LASTS:
            proof = await write()
            self._latest[name] = time.monotonic(), proof
        return proof

    def details(self) -> list[str]:
        """What the failed ones said."""
        return [f"{name}: a write failed: {proof.detail}" for name, (_, proof) in self._latest.items() if proof.error]


def prove_log(journal: Journal) -> Proof:
    """Blocking, as the log is."""
    try:
        journal.prove()
    except StoreError as error:
        return Proof(type(error).__name__, str(error))
    return Proof()


async def prove_local(backend: HistoryBackend) -> Proof:
    try:
        health = await backend.health()
    except MemorydError as error:
        return Proof(type(error).__name__, str(error))
    return Proof() if health else Proof("unhealthy", health.detail)
