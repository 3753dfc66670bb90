"""A backend that keeps its events in a file of JSON lines: a plugin for tests, slow enough to be killed in its middle.

``[backends.shelf]``: ``path`` is the file; each event is appended under the number of events before it, again if it comes again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from memoryd.core import (
    Availability,
    BackendContext,
    BackendInfo,
    Cursor,
    Entry,
    Health,
    Hit,
    Memory,
    Outcome,
    Query,
    Turn,
)

INFO = BackendInfo("shelf", "shelf (file)", False, "a file", False, frozenset({"turns"}))


class Shelf:
    info = INFO

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_available(self) -> Availability:
        return Availability(True)

    async def open(self) -> None:
        return None

    async def health(self) -> Health:
        return Health(True)

    async def position(self) -> Cursor | None:
        return None

    async def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        with self._path.open("a", encoding="utf-8") as file:
            for entry in entries:
                said = entry.event.user if isinstance(entry.event, Turn) else ""
                file.write(json.dumps([entry.event.event_id.hex(), type(entry.event).__name__, said]) + "\n")
                file.flush()
                time.sleep(0.001)
        return [Outcome("ok")] * len(entries)

    async def recall(self, query: Query) -> list[Hit]:
        return []

    async def retrieve(self, user_id: str, key: str) -> Memory | None:
        return None

    async def query(self, user_id: str, text: str, limit: int = 10) -> list[Memory]:
        return []

    async def list_keys(self, user_id: str) -> list[str]:
        return []

    async def aclose(self) -> None:
        return None


def create(context: BackendContext) -> Shelf:
    return Shelf(Path(context.config["path"]))
