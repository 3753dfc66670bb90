"""What the provider adds to a turn of Hermes: the same driver, with the host's threads, with our provider and with one that does nothing."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

from _figures import figure, interleave, median, texts

sys.path.insert(0, str(Path(__file__).parents[2]))

from memoryd_hermes import MemorydProvider
from tests.adapters.hermes.manager import Manager

STORED = 10_000
ROUNDS = 300
CORPUS = list(texts(400))


class NoProvider:
    """A provider without a memory: what is left is the host."""

    pre_compress_checkpoint_api_version = 2

    def get_tool_schemas(self) -> list[Any]:
        return []

    def initialize(self, session_id: str, **kwargs: Any) -> None: ...

    def sync_turn(self, user: str, assistant: str, *, session_id: str = "", messages: Any = None, turn_author: Any = None) -> None: ...

    def queue_prefetch(self, query: str, *, session_id: str = "") -> None: ...

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        return ""

    def shutdown(self) -> None: ...


def driven(provider: Any, home: Path) -> Manager:
    manager = Manager()
    manager.register_memory_provider(provider)
    manager.initialize_all("bench", hermes_home=str(home), platform="cli", agent_context="primary")
    return manager


def waited(manager: Manager, call: Callable[[], None]) -> Callable[[], None]:
    """The call, until the host's worker has done it."""

    def run() -> None:
        call()
        manager.flush_pending()
        manager.forget_done()

    return run


def compared(name: str, bar: float, stretch: float, times: dict[str, list[float]]) -> dict[str, Any]:
    ours, bare = (median(times[key]) * 1000 for key in ("ours", "bare"))
    ratio = ours / bare
    detail = f"{ours:.3f} ms; without a provider {bare:.3f} ms: {ratio:.1f}x"
    return figure(f"Hermes: {name} adds, p50", bar, stretch, ours - bare, " ms", detail) | {"ratio": round(ratio, 2)}


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        ours, bare = driven(MemorydProvider(), Path(scratch)), driven(NoProvider(), Path(scratch))
        said = cycle(CORPUS)
        for number in range(STORED):
            ours.provider.sync_turn(f"{number} {next(said)}", "Noted.", session_id=f"s{number % 50}")
        ours.recalled(CORPUS[0])
        try:
            return measured(ours, bare)
        finally:
            ours.shutdown_all()


def measured(ours: Manager, bare: Manager) -> list[dict[str, Any]]:
    def step(manager: Manager, call: Callable[[str], None]) -> Callable[[], None]:
        said, numbers = cycle(CORPUS), iter(range(10**9))
        return waited(manager, lambda: call(f"{next(numbers)} {next(said)}"))

    def asking(manager: Manager) -> Callable[[], object]:
        said = cycle(CORPUS)
        return lambda: manager.prefetch_all(" ".join(next(said).split()[:6]))

    both = {"ours": ours, "bare": bare}
    synced = interleave(ROUNDS, **{key: step(one, lambda text, one=one: one.sync_all(text, "Noted.")) for key, one in both.items()})
    queued = interleave(ROUNDS, **{key: step(one, one.queue_prefetch_all) for key, one in both.items()})
    ours.recalled(CORPUS[1])
    found = interleave(ROUNDS, **{key: asking(one) for key, one in both.items()})
    return [
        compared("sync_turn", 1.0, 0.5, synced),
        compared("queue_prefetch", 1.0, 0.25, queued),
        compared(f"prefetch at {STORED:,} turns", 20.0, 10.0, found),
    ]
