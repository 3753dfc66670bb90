"""The Honcho backend: turns as messages, memories as session metadata, recall by search.  Nothing of Honcho loads before ``open``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from secrets import token_hex
from typing import TYPE_CHECKING

import attrs
import trio

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
    Outcome,
    Query,
    Redactor,
    checked_limit,
)
from memoryd.errors import BackendAmbiguous, BackendPermanent, BackendTransient
from memoryd_honcho._names import Names
from memoryd_honcho._settings import Settings, read_settings

if TYPE_CHECKING:
    from memoryd_honcho._apply import Parts
    from memoryd_honcho._client import Client
    from memoryd_honcho._memories import Memories
    from memoryd_honcho._recall import Recaller

__all__ = ["HonchoBackend", "create"]

_CAPABILITIES: frozenset[Capability] = frozenset({"turns", "memories", "recall", "query", "list", "delete", "forget"})
_PACKAGE = "honcho-ai"


@attrs.frozen(slots=True)
class _Open:
    """What an open backend holds."""

    client: Client
    parts: Parts
    memories: Memories
    recaller: Recaller


class HonchoBackend:
    """:class:`~memoryd.core.Backend` over Honcho's API.  The log keeps its cursor; what may have arrived is looked up before it is sent
    again, and copies are folded when read."""

    def __init__(self, context: BackendContext, settings: Settings) -> None:
        self._context = context
        self._settings = settings
        self._names = Names(context.key, settings.peers)
        self._open: _Open | None = None
        self._settled: Cursor | None = None
        self._assistant_ready = False

    @property
    def info(self) -> BackendInfo:
        return BackendInfo(
            name=self._context.name, label="honcho (cloud)", is_cloud=True, data_location=self._settings.url or "not configured",
            requires_api_key=True, capabilities=_CAPABILITIES,
        )  # fmt: skip

    def is_available(self) -> Availability:
        """Whether an address is configured and the SDK is installed; imports neither it nor the detector, and calls nobody."""
        if not self._settings.url:
            return Availability(False, "set HONCHO_URL (or backends.honcho.url) to the server's address; there is no default")
        try:
            distribution(_PACKAGE)
        except PackageNotFoundError:
            return Availability(False, f"install the package {_PACKAGE}")
        if self._context.redactor is None:
            return Availability(False, "nothing is sent without a redactor, and none was given")
        return Availability(True)

    async def open(self) -> None:
        """Build the client, off the event loop; the server is not asked yet.  Raises :class:`BackendPermanent` where a package fails."""
        if self._open is None:
            # the first time on a machine it takes seconds, which nobody who closes has to wait for: it leaves nothing open
            redact = await trio.to_thread.run_sync(self._load, abandon_on_cancel=True)
            self._open = await trio.to_thread.run_sync(self._build, redact)

    async def aclose(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened.client.aclose()

    async def position(self) -> Cursor | None:
        return None

    async def health(self) -> Health:
        """Write a mark and read it back from the server's database."""
        mark = token_hex(8)
        session = self._names.probe()
        try:
            client = self._need().client
            await client.set_session_metadata(session, {"ns": "memoryd-health", "rev": mark})
            found = await client.session_metadata(session)
        except (BackendTransient, BackendPermanent, BackendAmbiguous) as error:
            return Health(False, str(error))
        if found is None or found.get("rev") != mark:
            return Health(False, "Honcho does not give back what was written")
        return Health(True, self._settings.url, await self._idle_deriver(client))

    async def _idle_deriver(self, client: Client) -> str:
        """Whether the server takes messages in and works on none of them; empty where it cannot be told."""
        try:
            total, done, in_hand = await client.derivation()
        except (BackendTransient, BackendPermanent, BackendAmbiguous):
            return ""
        if total == done or in_hand:
            return ""
        return f"{total - done} of {total} pieces of work wait for the server's deriver, and none is in hand: it derives nothing now"

    # -- writing ----------------------------------------------------------------------------------------------------------------

    async def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        """One outcome an event.  Only where the last call ended well, and these entries come next, nothing has to be looked up."""
        from memoryd_honcho._apply import Batch

        opened = self._need()
        if not entries:
            return []
        look = not _follow(self._settled, entries)
        self._settled = None
        if look:
            opened.parts.threads.forget_known()
        if not self._assistant_ready:
            await opened.client.assistant_unobserved()
            self._assistant_ready = True
        outcomes = await Batch(opened.parts, entries, look=look).run()
        if all(outcome.kind in ("ok", "permanent") for outcome in outcomes):
            self._settled = entries[-1].cursor
        return outcomes

    # -- reading ----------------------------------------------------------------------------------------------------------------

    async def recall(self, query: Query) -> list[Hit]:
        return await self._need().recaller.recall(query)

    async def retrieve(self, user_id: str, key: str) -> Memory | None:
        return await self._need().memories.retrieve(user_id, key)

    async def query(self, user_id: str, text: str, limit: int = 10) -> list[Memory]:
        """Compared here: a text of the user's in a filter could mean anything, ``*`` everything."""
        most = checked_limit(limit)
        wanted = text.casefold()
        if not wanted or not most:
            return []
        found = await self._need().memories.all_of(user_id)
        return [memory for memory in found if wanted in memory.key.casefold() or wanted in memory.value.casefold()][:most]

    async def list_keys(self, user_id: str) -> list[str]:
        return [memory.key for memory in await self._need().memories.all_of(user_id)]

    # -- how it is built --------------------------------------------------------------------------------------------------------

    def _need(self) -> _Open:
        if self._open is None:
            raise BackendTransient("the Honcho backend is not open")
        return self._open

    def _load(self) -> Redactor:
        """Import the SDK and make the redactor: seconds of CPU, on a thread of their own."""
        if self._context.redactor is None:
            raise BackendPermanent("nothing is sent without a redactor, and none was given")
        try:
            import_module("memoryd_honcho._client")
            return self._context.redactor()
        except ImportError as error:
            raise BackendPermanent(f"a package of the Honcho backend cannot be imported: {error}") from error

    def _build(self, redact: Redactor) -> _Open:
        from memoryd_honcho._apply import Parts
        from memoryd_honcho._client import Client
        from memoryd_honcho._erase import Eraser
        from memoryd_honcho._memories import Memories
        from memoryd_honcho._recall import Recaller
        from memoryd_honcho._send import Sender
        from memoryd_honcho._threads import Threads
        from memoryd_honcho._turns import TurnWriter

        settings, names, client = self._settings, self._names, Client(self._settings)
        threads = Threads(client, names)
        memories = Memories(client, names, redact)
        writer = TurnWriter(names, settings, redact)
        eraser = Eraser(client, threads, memories, writer)
        parts = Parts(writer, threads, Sender(client, settings.settle), memories, eraser, settings.settle)
        return _Open(client, parts, memories, Recaller(self._context.name, client, names, threads, memories, redact))


def _follow(settled: Cursor | None, entries: Sequence[Entry]) -> bool:
    """Whether ``entries`` begin right after the last ones that were settled by this process."""
    first = entries[0].cursor
    return settled is not None and (first.epoch, first.seq) == (settled.epoch, settled.seq + 1)


def create(context: BackendContext) -> HonchoBackend:
    """The entry point ``honcho`` of the group ``memoryd.backends``.  Raises :class:`~memoryd.errors.ConfigError` for a wrong setting."""
    return HonchoBackend(context, read_settings(context.config, os.environ))
