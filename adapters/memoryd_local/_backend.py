"""The local backend: memory.db in the profile's directory, one writing thread, two reading ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import attrs

from memoryd.core import (
    Availability,
    BackendContext,
    BackendInfo,
    Capability,
    Cursor,
    Entry,
    Health,
    Hit,
    Memory,
    MemoryVersion,
    Outcome,
    Query,
    checked_limit,
    to_micros,
)
from memoryd.errors import BackendTransient
from memoryd.recall import language_named, tokenizer
from memoryd.store import Connection, Options, ProfileStore, Schema, connect, load_queries, prepare
from memoryd_local._lane import Lane
from memoryd_local._read import Reader
from memoryd_local._recall import Searcher
from memoryd_local._writing import WriteSide

__all__ = ["LocalBackend", "create"]

T = TypeVar("T")
_READ_SECONDS = 2.0  # after that a read which nobody waits for ends by itself
_WRITER = Options(synchronous="NORMAL", busy_ms=250, autocheckpoint=1000, cache_kib=16_384)
_READER = Options(busy_ms=250, cache_kib=16_384, readonly=True)
_READERS = 2
_CAPABILITIES: frozenset[Capability] = frozenset({"turns", "memories", "recall", "query", "list", "delete", "history", "forget"})


@attrs.frozen(slots=True, eq=False, repr=False)
class ReadSide:
    """What a reading thread holds."""

    connection: Connection
    reader: Reader
    searcher: Searcher


class LocalBackend:
    """:class:`~memoryd.core.HistoryBackend` over SQLite's full-text search.  Any number of processes may use one profile."""

    def __init__(self, context: BackendContext) -> None:
        self._context = context
        self._path = context.directory / "memory.db"
        self._sql = load_queries("memoryd_local")
        self._language = language_named(context.config.get("language", "en"))
        self._writer = Lane(f"{context.name}-writer", self._open_writer)
        self._readers = [Lane(f"{context.name}-reader-{number}", self._open_reader) for number in range(1, _READERS + 1)]

    @property
    def info(self) -> BackendInfo:
        return BackendInfo(
            name=self._context.name, label="local (SQLite)", is_cloud=False, data_location=str(self._path), requires_api_key=False,
            capabilities=_CAPABILITIES,
        )

    def is_available(self) -> Availability:
        return Availability(True)

    async def open(self) -> None:
        """Make or migrate the file and open the connections.  Raises :class:`~memoryd.errors.StoreError`."""
        await self._writer.open()
        for reader in self._readers:
            await reader.open()

    async def aclose(self) -> None:
        for reader in self._readers:
            await reader.close()
        await self._writer.close()

    async def health(self) -> Health:
        try:
            await self._writer.write(WriteSide.prove)
        except BackendTransient as error:
            return Health(False, str(error))
        return Health(True, str(self._path))

    # -- writing -----------------------------------------------------------------------------------------------------------------

    async def position(self) -> Cursor:
        return await self._writer.write(WriteSide.position)

    async def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        return await self._writer.write(lambda side: side.project(entries))

    async def erase_traces(self) -> None:
        """Merge the index, so that no old part of it holds a forgotten word, and empty the write-ahead log.

        It goes in slices between which events are applied.  Raises :class:`~memoryd.errors.BackendTransient` where another process
        is in the way; calling again begins anew.
        """
        more = await self._writer.write(lambda side: side.merge_index(begin=True))
        while more:
            more = await self._writer.write(lambda side: side.merge_index(begin=False))
        await self._writer.write(WriteSide.empty_log)

    async def check_index(self) -> None:
        """Compare the full-text index with itself, whole; raises :class:`~memoryd.errors.BackendTransient` where it is damaged."""
        await self._writer.write(WriteSide.check_index)

    async def rebuild(self) -> None:
        await self._writer.write(WriteSide.rebuild)

    # -- reading -----------------------------------------------------------------------------------------------------------------

    async def recall(self, query: Query) -> list[Hit]:
        return await self._read(lambda side: side.searcher.recall(query))

    async def retrieve(self, user_id: str, key: str) -> Memory | None:
        return await self._read(lambda side: side.reader.retrieve(user_id, key))

    async def query(self, user_id: str, text: str, limit: int = 10) -> list[Memory]:
        most = checked_limit(limit)
        return await self._read(lambda side: side.reader.query(user_id, text, most))

    async def list_keys(self, user_id: str) -> list[str]:
        return await self._read(lambda side: side.reader.list_keys(user_id))

    async def list_memories(self, user_id: str, *, limit: int | None = None, offset: int = 0) -> list[Memory]:
        return await self._read(lambda side: side.reader.list_memories(user_id, limit, offset))

    async def history(self, user_id: str, key: str, *, as_of: datetime | None = None) -> list[MemoryVersion]:
        at = None if as_of is None else to_micros(as_of)
        return await self._read(lambda side: side.reader.history(user_id, key, at))

    async def find(self, user_id: str, id: str) -> Hit | None:
        return await self._read(lambda side: side.reader.find(user_id, id))

    async def counts(self) -> Mapping[str, int]:
        return await self._read(lambda side: side.reader.counts())

    async def _read(self, work: Callable[[ReadSide], T]) -> T:
        """By the first reader that is free: its page cache is warm, and a slow read delays nobody else."""
        return await min(self._readers, key=lambda lane: lane.load).read(work, _READ_SECONDS)

    # -- on the lanes' threads ---------------------------------------------------------------------------------------------------

    def _open_writer(self) -> WriteSide:
        context = self._context
        profile = ProfileStore(name=context.profile, instance=context.instance, directory=context.directory, key=context.key)
        prepare(self._path, Schema.load("memory", "memoryd_local"), profile, vfs=context.vfs)
        return WriteSide(connect(self._path, _WRITER, vfs=context.vfs), self._sql)

    def _open_reader(self) -> ReadSide:
        connection = connect(self._path, _READER, vfs=self._context.vfs)
        name = self._context.name
        return ReadSide(
            connection, Reader(name, connection, self._sql), Searcher(name, connection, self._sql, self._language, tokenizer())
        )


def create(context: BackendContext) -> LocalBackend:
    """The entry point ``local`` of the group ``memoryd.backends``."""
    return LocalBackend(context)
