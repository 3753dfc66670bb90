"""The memory, wherever it is: through the daemon if that is up, else opened in this process.  Same methods, same guarantees.

    async with memoryd.connect() as rt:
        with memoryd.scope(user="ada", session="s1"):
            rt.sync_turn("I live in Turin", "Noted.")
            print(await rt.recall("where do I live?"))

Where the daemon goes away and does not come back within seconds, this process opens the memory itself, takes over what the daemon had
not acknowledged, each event once, and goes on by itself.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, cast

import trio

from memoryd.client import AWAY, Attempts, Client, Held
from memoryd.core import Accepted, Config, GivenEvent, Receipt, Scope, bind_event, bind_scope
from memoryd.errors import ClosedError, ConfigError, DaemonError, DaemonFault, DeadlineExceeded, MemorydError
from memoryd.settings import load_config, resolve_home, resolve_socket
from memoryd.wire import config_fingerprint

if TYPE_CHECKING:
    from memoryd.runtime import Portal, Runtime

__all__ = ["connect"]

Use = Literal["auto", "require", "never"]


@asynccontextmanager
async def connect(
    home: str | os.PathLike[str] | None = None,
    profile: str = "default",
    config: Config | Mapping[str, Any] | None = None,
    *,
    daemon: Use | None = None,
    socket: str | os.PathLike[str] | None = None,
) -> AsyncIterator[Runtime]:
    """The memory of ``profile`` below ``home``, as :func:`memoryd.open_runtime` opens it or as the daemon has it open.

    ``daemon`` is ``auto`` (through the daemon if it is up and has the same configuration), ``require`` (raises
    :class:`DaemonUnavailable` where it is not up; its configuration counts), or ``never``; the default is the setting ``daemon.use``.
    What is given is a :class:`memoryd.Runtime` or a client with its methods.
    """
    from memoryd.runtime import open_runtime

    root = resolve_home(home)
    settings = config if isinstance(config, Config) else load_config(root, profile, config).config
    use = cast("Use", settings.daemon.use if daemon is None else daemon)
    client = await _reach(root, profile, settings, use, socket) if use != "never" else None
    if client is None:
        async with open_runtime(root, profile, settings) as runtime:
            yield runtime
        return
    try:
        yield cast("Runtime", client)
    finally:
        await client.aclose()


async def _reach(
    home: os.PathLike[str], profile: str, config: Config, use: Use, socket: str | os.PathLike[str] | None
) -> _Lasting | None:
    """A client that is welcome; None where there is no daemon, or one that sees another configuration, and none is required."""
    if use == "auto" and socket is None and not _is_there():
        return None
    client = _Lasting(home, profile, config, socket=socket)
    try:
        await client.__aenter__()
    except (DaemonError, DeadlineExceeded, ClosedError):
        if use == "require":
            raise
        return None
    if use == "auto" and client.fingerprint != config_fingerprint(config):
        await client.aclose()
        return None
    return client


def _is_there() -> bool:
    """Whether there may be a daemon in the usual place, at no cost; where a path is too long for a socket there is none."""
    try:
        return os.path.exists(resolve_socket())
    except ConfigError:
        return False


class _Lasting(Client):
    """A client that outlasts its daemon."""

    _opening = AWAY  # one that stands still is as good as none

    def __init__(self, home: os.PathLike[str], profile: str, config: Config, *, socket: str | os.PathLike[str] | None) -> None:
        super().__init__(home, profile, config, socket=socket, on_away=self._try_to_take_over)
        self._taking = threading.RLock()
        self._lock = threading.Lock()
        self._portal: Portal | None = None
        self._is_between = False  # neither the daemon nor this process takes turns: they are held
        self._took_over = False

    @property
    def fingerprint(self) -> str:
        return str(self._welcome["config"])

    # -- calls ------------------------------------------------------------------------------------------------------------------

    async def _call(self, method: str, arguments: Mapping[str, Any], on_progress: Callable[[int, int], None] | None = None) -> Any:
        if self._took_over:
            return await self._here(method, arguments, on_progress)
        return await super()._call(method, arguments, on_progress)

    async def _away(
        self,
        error: Exception,
        method: str,
        arguments: Mapping[str, Any],
        attempts: Attempts,
        on_progress: Callable[[int, int], None] | None,
    ) -> Any:
        if isinstance(error, DaemonFault) or method == "prefetch":  # a bug is a bug here too, and what is late is empty
            raise error
        await trio.to_thread.run_sync(self._take_over)
        given = None if attempts.event_id is None else GivenEvent(bytes.fromhex(attempts.event_id), attempts.after)
        with bind_event(given):
            return await self._here(method, arguments, on_progress)

    async def checkpoint(
        self, messages: Sequence[Any] | None, *, host: str = "python", trigger: str = "manual", source: bytes | None = None
    ) -> Receipt:
        """The gate needs no daemon: one that does not answer in a quarter of the deadline is not waited for."""
        arguments = {"messages": messages, "host": host, "trigger": trigger, "source": source}
        if not self._took_over:
            with trio.move_on_after(self._seconds("checkpoint", 20.0) / 4):
                return cast("Receipt", await self._call("checkpoint", arguments))
            await trio.to_thread.run_sync(self._take_over)
        return cast("Receipt", await self._here("checkpoint", arguments, None))

    async def _here(self, method: str, arguments: Mapping[str, Any], on_progress: Callable[[int, int], None] | None) -> Any:
        """The same call, of the runtime in this process."""
        more = {"on_progress": on_progress} if method == "verify" else {}
        assert self._portal is not None
        done = trio.Event()
        token = trio.lowlevel.current_trio_token()
        answer: list[Any] = []

        def settle(value: Any, error: BaseException | None) -> None:
            answer[:] = [value, error]
            token.run_sync_soon(done.set)

        job = self._portal.submit(lambda runtime: getattr(runtime, method)(**arguments, **more), settle)
        try:
            await done.wait()
        except trio.Cancelled:
            job.cancel()
            with trio.CancelScope(shield=True):
                await done.wait()
            raise
        value, error = answer
        if error is not None:
            raise error
        return value

    # -- plain calls ------------------------------------------------------------------------------------------------------------

    def _accept(self, method: str, arguments: Mapping[str, Any]) -> Accepted:
        self._scope()
        while True:
            accepted = self._accept_here(method, arguments)
            if accepted is not None:
                return accepted
            try:
                return super()._accept(method, arguments)
            except ClosedError:
                if not self._is_between:
                    raise  # else it was taken over in this moment

    def _accept_here(self, method: str, arguments: Mapping[str, Any]) -> Accepted | None:
        """While and after taking over; None where the daemon serves."""
        with self._lock:
            if self._took_over and self._portal is not None:
                return cast("Accepted", getattr(self._portal.runtime, method)(**arguments))
            if self._is_between:
                return self._line.keep(method, arguments, self._scope())
        return None

    def queue_prefetch(self, query: str) -> None:
        if self._took_over and self._portal is not None:
            self._portal.runtime.queue_prefetch(query)
        else:
            super().queue_prefetch(query)

    def dead_letters(self) -> list[Any]:
        if self._took_over and self._portal is not None:
            return list(self._portal.runtime.dead_letters())
        return super().dead_letters()

    # -- taking over ------------------------------------------------------------------------------------------------------------

    def _try_to_take_over(self) -> None:
        """The daemon is away: on the thread that sends what is held."""
        try:
            self._take_over()
        except MemorydError:  # it stays held, and this is tried again
            return

    def _take_over(self) -> None:
        """Open the memory here, and give it what is held, in order.  Raises what opening raises; nothing has changed then."""
        from memoryd.runtime import Portal

        with self._taking:
            if self._took_over:
                return
            if self._portal is None:
                self._portal = Portal({"home": self.home, "profile": self.profile, "config": self._config})
            self._is_between = True
            self._line.close(0.0)
            while True:
                self._give(self._line.left())
                with self._lock:
                    if not self._line.held:
                        self._took_over = True
                        return

    def _give(self, items: list[Held]) -> None:
        assert self._portal is not None
        for item in items:
            given = GivenEvent(bytes.fromhex(item.event_id), item.after)
            result: Accepted | MemorydError
            try:
                with bind_scope(Scope(**item.scope)), bind_event(given):
                    result = getattr(self._portal.runtime, item.method)(**item.arguments)
            except MemorydError as error:
                result = error
            self._line.settle_as(item, result)

    async def aclose(self) -> None:
        """As closing a runtime; what the daemon did not take is taken over first.  Raises :class:`NotDurable` where that fails."""
        with trio.CancelScope(shield=True):
            self._streams.close()
            await trio.to_thread.run_sync(self._close)

    def _close(self) -> None:
        problem = "the daemon is away"
        self._line.wait(min(AWAY, self._seconds("close", 10.0)))
        with self._taking:  # one that goes on ends first
            if self._line.held:
                try:
                    self._take_over()
                except MemorydError as error:
                    problem = f"the daemon is away, and here: {error}"
            left = self._line.close(0.0)
            if self._portal is not None:
                self._portal.close()
        self._line.check_kept(len(left), problem)


class _Door(ModuleType):
    """The import system names this module where the package names the function: both can be called."""

    __call__ = staticmethod(connect)


sys.modules[__name__].__class__ = _Door
