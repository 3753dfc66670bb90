"""The calls that are made: the SDK's objects behind a few methods with a deadline each.  The only module that imports the SDK's client.

Sessions and peers are named, not fetched: the SDK's own ``peer()`` and ``session()`` create what they ask for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import attrs
import httpx
import trio
from honcho import Honcho, Peer, Session
from honcho.api_types import PeerConfig
from honcho.http import AsyncHonchoHTTPClient
from honcho.http.exceptions import ConnectionError  # not the builtin one

from memoryd.errors import BackendAmbiguous, BackendError, BackendPermanent, BackendTransient
from memoryd_honcho._errors import CALL_ERRORS, NotThere, mapped
from memoryd_honcho._http import asked_to_wait, connections, tls
from memoryd_honcho._settings import Settings

__all__ = ["Client", "Message", "Row", "Written"]

T = TypeVar("T")
Metadata = dict[str, Any]
_PAGE = 100


@attrs.frozen(slots=True)
class Row:
    """A message to be written."""

    peer: str
    content: str = attrs.field(repr=False)
    metadata: Metadata
    at: datetime


@attrs.frozen(slots=True)
class Message:
    """A message that was read."""

    id: str
    session: str
    peer: str
    content: str = attrs.field(repr=False)
    metadata: Metadata
    at: datetime


@attrs.frozen(slots=True)
class Written:
    """A conclusion of a user; ``session`` is the one that it was written beside."""

    id: str
    content: str = attrs.field(repr=False)
    session: str | None
    at: datetime


class Client:
    """Honcho's API for one workspace.  Building it takes a second of CPU and no call: off the event loop, please.

    Every method raises :class:`~memoryd.errors.BackendTransient`, :class:`~memoryd.errors.BackendPermanent` or, where the answer to a
    write that must not be repeated was lost, :class:`~memoryd.errors.BackendAmbiguous`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._unused = httpx.Client(verify=tls())  # the SDK wants one for its blocking half, and would make a slower one
        self._honcho = Honcho(
            api_key=settings.api_key, base_url=settings.url, workspace_id=settings.workspace, timeout=settings.timeout, max_retries=0,
            http_client=self._unused,
        )  # fmt: skip
        self._connections = connections(settings)
        # the SDK's own retries sleep with asyncio and would write twice
        self._honcho._async_http = AsyncHonchoHTTPClient(
            base_url=settings.url, api_key=settings.api_key, timeout=settings.timeout, max_retries=0, http_client=self._connections
        )

    async def aclose(self) -> None:
        with trio.CancelScope(shield=True), trio.move_on_after(2):
            await self._connections.aclose()
        self._unused.close()

    # -- messages ---------------------------------------------------------------------------------------------------------------

    async def add_messages(self, session: str, rows: Sequence[Row]) -> None:
        """Write at most 100 messages in one transaction of the server."""
        try:
            peers = {id: Peer(id, self._honcho) for id in {row.peer for row in rows}}
            messages = [peers[row.peer].message(row.content, metadata=row.metadata, created_at=row.at) for row in rows]
        except ValueError as error:  # nothing was sent
            raise BackendPermanent(f"the SDK refuses a message ({type(error).__name__})") from None
        await self._write_once(lambda: Session(session, self._honcho).aio.add_messages(messages))

    async def messages(self, session: str, filters: Metadata | None = None) -> list[Message]:
        """All messages of a session, in the order in which they were written; none for a session that is not there."""
        found = await self._pages(lambda: Session(session, self._honcho).aio.messages(filters=filters, size=_PAGE))
        return [_message(one) for one in found]

    async def mark_message(self, session: str, message: str, metadata: Metadata) -> None:
        """Replace a message's metadata; the content cannot be changed."""
        await self._write(lambda: Session(session, self._honcho).aio.update_message(message, metadata))

    async def search(self, text: str, filters: Metadata, limit: int, session: str | None = None) -> list[Message]:
        """Messages by words and meaning, best first.  The server gives the nearest there are, however far."""

        async def find() -> list[Message]:
            where = self._honcho.aio if session is None else Session(session, self._honcho).aio
            return [_message(found) for found in await where.search(text, filters=filters, limit=limit)]

        return await self._read(find)

    # -- sessions ---------------------------------------------------------------------------------------------------------------

    async def sessions(self, filters: Metadata, most: int | None = None) -> list[tuple[str, Metadata]]:
        """Id and metadata of the sessions that match, oldest first, read from the database and not from a cache."""
        found = await self._pages(lambda: self._honcho.aio.sessions(filters=filters, size=min(_PAGE, most or _PAGE)), most)
        return [(one.id, one.metadata or {}) for one in found]

    async def session_metadata(self, session: str) -> Metadata | None:
        """The metadata of one session, or None where it is not there; creates nothing."""
        found = await self.sessions({"id": session}, 1)
        return found[0][1] if found else None

    async def set_session_metadata(self, session: str, metadata: Metadata) -> None:
        """Make the session if need be, and replace its metadata."""

        async def write() -> None:
            await self._honcho._ensure_workspace_async()  # the SDK does so before every other call
            await Session(session, self._honcho).aio.set_metadata(metadata)

        await self._write(write)

    async def delete_session(self, session: str) -> None:
        """Ask for the session's end; the server erases it later.  One that is not there is no error."""
        try:
            await self._write(lambda: Session(session, self._honcho).aio.delete())
        except NotThere:
            return

    async def summary(self, session: str) -> tuple[str, datetime] | None:
        """The newest short summary that the server made of a session."""
        found = await self._read(lambda: Session(session, self._honcho).aio.summaries())
        short = found.short_summary
        return None if short is None else (short.content, datetime.fromisoformat(str(short.created_at)))

    async def derivation(self) -> tuple[int, int, int]:
        """Pieces of work that the server has made of messages: all, those done, those in hand.  One that failed counts as done."""
        found = await self._read(lambda: self._honcho.aio.queue_status())
        return found.total_work_units, found.completed_work_units, found.in_progress_work_units

    # -- peers and conclusions --------------------------------------------------------------------------------------------------

    async def assistant_unobserved(self) -> None:
        """Make the assistant's peer, of whom the server then derives nothing."""
        await self._write(lambda: self._honcho.aio.peer(self._settings.assistant, configuration=PeerConfig(observe_me=False)))

    async def card(self, peer: str) -> list[str]:
        """What the server holds for certain about a peer."""
        return list(await self._read(lambda: Peer(peer, self._honcho).aio.get_card()) or [])

    async def conclude(self, peer: str, content: str, session: str) -> None:
        """Write a fact about a peer.  Needs the server's embedding service."""
        view = Peer(peer, self._honcho).conclusions.aio
        await self._write_once(lambda: view.create([{"content": content, "session_id": session}]))

    async def conclusions(self, peer: str, session: str) -> list[Written]:
        """The facts that were written beside a session."""
        found = await self._pages(lambda: Peer(peer, self._honcho).conclusions.aio.list(session=session, size=_PAGE))
        return [_written(one) for one in found]

    async def find_conclusions(self, peer: str, text: str, limit: int) -> list[Written]:
        """Facts about a peer by meaning, nearest first."""
        found = await self._read(lambda: Peer(peer, self._honcho).conclusions.aio.query(text, top_k=limit))
        return [_written(one) for one in found]

    async def drop_conclusion(self, peer: str, conclusion: str) -> None:
        try:
            await self._write(lambda: Peer(peer, self._honcho).conclusions.aio.delete(conclusion))
        except NotThere:
            return

    # -- how a call is made -----------------------------------------------------------------------------------------------------

    async def _read(self, call: Callable[[], Awaitable[T]]) -> T:
        return await self._call(call, self._settings.read_timeout, repeatable=True)

    async def _pages(self, first: Callable[[], Awaitable[Any]], most: int | None = None) -> list[Any]:
        """The items of a page and of those after it, ``most`` at most; each page has the deadline of a call."""
        page = await self._read(first)
        items = list(page.items)
        while page.has_next_page() and (most is None or len(items) < most):
            page = await self._read(page.get_next_page)
            items += page.items
        return items[:most]

    async def _write(self, call: Callable[[], Awaitable[T]]) -> T:
        """A write that may be repeated."""
        return await self._call(call, self._settings.timeout, repeatable=True)

    async def _write_once(self, call: Callable[[], Awaitable[T]]) -> T:
        """A write that makes something new each time; a lost answer is ambiguous."""
        return await self._call(call, self._settings.timeout, repeatable=False)

    async def _call(self, call: Callable[[], Awaitable[T]], seconds: float, *, repeatable: bool) -> T:
        try:
            with trio.fail_after(seconds):
                return await (_again(call) if repeatable else call())
        except trio.TooSlowError as error:
            raise _too_slow(seconds, repeatable) from error
        except CALL_ERRORS as error:
            found = mapped(error, repeatable=repeatable, retry_after=asked_to_wait())
        raise found


async def _again(call: Callable[[], Awaitable[T]]) -> T:
    """The call, made once more where its connection was gone: a server that answered 500 closes it without saying so."""
    try:
        return await call()
    except ConnectionError as error:
        if not isinstance(error.__cause__, (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)):
            raise
    return await call()


def _too_slow(seconds: float, repeatable: bool) -> BackendError:
    said = f"Honcho did not answer within {seconds:g} s"
    return BackendTransient(said) if repeatable else BackendAmbiguous(said)


def _message(found: Any) -> Message:
    return Message(found.id, found.session_id, found.peer_id, found.content, dict(found.metadata or {}), found.created_at)


def _written(found: Any) -> Written:
    return Written(found.id, found.content, found.session_id, found.created_at)

