"""A backend that keeps nothing and says so."""

from __future__ import annotations

from collections.abc import Sequence

from memoryd.core import (
    OK,
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
)

__all__ = ["NullBackend", "create"]


class NullBackend:
    """Every capability is a declared False: writes are accepted and dropped, reads answer with nothing."""

    info = BackendInfo(
        name="null",
        label="null (disabled)",
        is_cloud=False,
        data_location="nowhere",
        requires_api_key=False,
        capabilities=frozenset(),
    )

    def is_available(self) -> Availability:
        return Availability(available=True)

    async def open(self) -> None:
        return None

    async def health(self) -> Health:
        return Health(ok=True, detail="keeps nothing")

    async def position(self) -> Cursor | None:
        return None

    async def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        return [OK] * len(entries)

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


def create(context: BackendContext) -> NullBackend:
    """The entry point ``null`` of ``memoryd.backends``."""
    return NullBackend()
