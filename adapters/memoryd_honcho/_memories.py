"""Keyed memories: one session each, whose metadata is the memory; a conclusion beside it lets Honcho find it by meaning."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

import attrs
import trio

from memoryd.core import MAX_NAME, Deletion, Entry, Memory, MemoryWrite, Redactor, from_micros
from memoryd.errors import BackendError
from memoryd_honcho._client import Client
from memoryd_honcho._names import Names
from memoryd_honcho._turns import sequence_mark
from memoryd_honcho._wire import escape, unescape

__all__ = ["Memories", "Record"]

_NS = "memoryd-memory"
_MIRRORED = 4000  # characters of a memory that its conclusion holds


@attrs.frozen(slots=True)
class Record:
    """What the session of a key holds: the memory, or where ``deleted`` the place in the log of the deletion."""

    session: str
    user: str
    mark: str
    deleted: bool
    event: str = ""
    id: str = ""
    key: str = attrs.field(default="", repr=False)
    value: str = attrs.field(default="", repr=False)
    type: str = "preference"
    created: int = 0
    updated: int = 0
    extra: str = attrs.field(default="{}", repr=False)

    @property
    def place(self) -> tuple[str, int]:
        """Epoch and sequence number."""
        epoch, _, seq = self.mark.rpartition(":")
        return epoch, int(seq) if seq.isdigit() else 0

    def metadata(self) -> dict[str, Any]:
        """With a fresh ``rev``: the server drops a write that equals what it has cached."""
        fields = {"ns": _NS, "u": self.user, "q": self.mark, "del": self.deleted, "ev": self.event, "rev": token_hex(8)}
        if self.deleted:
            return fields
        texts = {"k": self.key, "v": self.value, "t": self.type, "m": self.extra}
        return fields | {"id": self.id, "c": self.created, "up": self.updated} | {name: escape(text) for name, text in texts.items()}

    def memory(self, user: str, key: str | None = None) -> Memory:
        """``key`` where it is known: the one that was sent may be redacted."""
        return Memory(
            self.id, key or self.key, self.value, user, self.type, from_micros(self.created), from_micros(self.updated),
            json.loads(self.extra),
        )  # fmt: skip


def _record(session: str, metadata: Mapping[str, Any]) -> Record | None:
    """None for what another program wrote there."""
    if metadata.get("ns") != _NS:
        return None
    texts = {name: unescape(str(metadata.get(name, ""))) for name in ("k", "v", "t", "m")}
    return Record(
        session, str(metadata.get("u")), str(metadata.get("q", "")), bool(metadata.get("del")), str(metadata.get("ev", "")),
        str(metadata.get("id", "")), texts["k"], texts["v"], texts["t"] or "preference", int(metadata.get("c", 0)),
        int(metadata.get("up", 0)), texts["m"] or "{}",
    )  # fmt: skip


class Memories:
    """Writes and reads the memories of a profile."""

    def __init__(self, client: Client, names: Names, redact: Redactor) -> None:
        self._client = client
        self._names = names
        self._redact = redact

    # -- writing ----------------------------------------------------------------------------------------------------------------

    async def write(self, entry: Entry, write: MemoryWrite) -> None:
        """Store a value, unless a later one is there.  Raises :class:`~memoryd.errors.ScopeMissing` where the event names no user."""
        user = write.scope.need_user()
        session = self._names.memory(user, write.key)
        before = await self._read(session)
        if before is not None and _has(before, entry):
            return
        record = await trio.to_thread.run_sync(self._made, session, user, entry, write, before)
        if before is not None:
            await self._drop_mirrors(user, session)
        await self._client.set_session_metadata(session, record.metadata())
        await self._mirror(user, record)

    async def delete(self, entry: Entry, deletion: Deletion) -> None:
        """Erase a value.  What is left says when, so that an older value that comes late stays away."""
        user = deletion.scope.need_user()
        session = self._names.memory(user, deletion.key)
        before = await self._read(session)
        if before is not None and _has(before, entry):
            return
        if before is not None:
            await self._drop_mirrors(user, session)
        gone = Record(session, self._names.user(user), sequence_mark(entry), True, deletion.event_id.hex())
        await self._client.set_session_metadata(session, gone.metadata())

    async def erase(self, user: str, marks: frozenset[str]) -> None:
        """Erase every value of ``user`` that was written at one of these places of the log."""
        for record in await self._all(user):
            if record.mark in marks:
                await self._drop_mirrors(user, record.session)
                gone = Record(record.session, record.user, record.mark, True, record.event)
                await self._client.set_session_metadata(record.session, gone.metadata())

    def _made(self, session: str, user: str, entry: Entry, write: MemoryWrite, before: Record | None) -> Record:
        fresh = before is None or before.deleted
        event = write.event_id.hex()
        return Record(
            session, self._names.user(user), sequence_mark(entry), False, event,
            event if before is None or fresh else before.id,
            self._redact(write.key)[:MAX_NAME], self._redacted_value(write.key, write.value), self._redact(write.type)[:MAX_NAME],
            write.at if before is None or fresh else before.created, write.at, self._redacted_extra(write.metadata),
        )  # fmt: skip

    def _redacted_value(self, key: str, value: str) -> str:
        """A value may be a secret by the name that it has."""
        named = self._redact(f"{key}={value}")
        return named.removeprefix(f"{key}=") if named.startswith(f"{key}=") else self._redact(value)

    def _redacted_extra(self, metadata: Mapping[str, Any]) -> str:
        """Metadata as JSON; left out whole where redaction leaves none."""
        text = self._redact(json.dumps(metadata))
        try:
            json.loads(text)
        except ValueError:
            return "{}"
        return text

    async def _mirror(self, user: str, record: Record) -> None:
        """Best effort: it needs the server's embeddings, and the metadata is the truth."""
        content = escape(f"[{record.key}] {record.value}"[:_MIRRORED])
        try:
            await self._client.conclude(self._names.peer(user), content, record.session)
        except BackendError:
            return

    async def _drop_mirrors(self, user: str, session: str) -> None:
        """No effort is spared: what was replaced or deleted must not be found."""
        peer = self._names.peer(user)
        for conclusion in await self._client.conclusions(peer, session):
            await self._client.drop_conclusion(peer, conclusion.id)

    # -- reading ----------------------------------------------------------------------------------------------------------------

    async def retrieve(self, user: str, key: str) -> Memory | None:
        record = await self._read(self._names.memory(user, key))
        return None if record is None or record.deleted else record.memory(user, key)

    async def all_of(self, user: str) -> list[Memory]:
        """Every memory of a user, newest first."""
        records = sorted(await self._all(user), key=lambda record: (record.place[1], record.updated), reverse=True)
        return [record.memory(user) for record in records]

    async def beside(self, user: str, sessions: Sequence[str]) -> dict[str, Memory]:
        """The memories that these sessions hold now, by session."""
        if not sessions:
            return {}
        found = [_record(*one) for one in await self._client.sessions({"id": {"in": list(sessions)}})]
        mine = self._names.user(user)
        return {record.session: record.memory(user) for record in found if record and not record.deleted and record.user == mine}

    async def _read(self, session: str) -> Record | None:
        metadata = await self._client.session_metadata(session)
        return None if metadata is None else _record(session, metadata)

    async def _all(self, user: str) -> list[Record]:
        asked = {"ns": _NS, "u": self._names.user(user), "del": False}
        records = (_record(*one) for one in await self._client.sessions({"metadata": asked}))
        return [record for record in records if record is not None]


def _has(record: Record, entry: Entry) -> bool:
    """Whether ``entry`` or a later change of the same log is there.  Another log is replayed in order, its own events known by id."""
    epoch, seq = record.place
    if epoch == entry.cursor.epoch:
        return seq >= entry.seq
    return record.event == entry.event.event_id.hex()
