"""What all connections of a daemon share, and the methods that are the daemon's own."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from memoryd import __version__
from memoryd.daemon._limits import Limits
from memoryd.daemon._pool import Pool
from memoryd.errors import InvalidInput
from memoryd.log import Log
from memoryd.wire import Call, Greeting, HookCall, HookReply, Welcome, config_fingerprint

if TYPE_CHECKING:
    from memoryd.daemon._server import Server
    from memoryd.runtime import Runtime

__all__ = ["AnswerHook", "Front", "OpenProfile", "Place"]

Place: TypeAlias = tuple[Path, str]
OpenProfile: TypeAlias = "Callable[[Path | None, str], AbstractAsyncContextManager[Runtime]]"
"""``open_profile(home, profile)``: the runtime for the length of a block; home None is the daemon's own."""

AnswerHook: TypeAlias = Callable[[HookCall, OpenProfile], Awaitable[HookReply]]


class Front:
    """``home`` is where clients that name none have their profiles; ``answer_hook`` serves the calls of hook programs."""

    server: Server

    def __init__(self, home: Path, path: Path, pool: Pool, limits: Limits, log: Log, answer_hook: AnswerHook) -> None:
        self.home = home
        self.path = path
        self.pool = pool
        self.limits = limits
        self.log = log
        self._answer_hook = answer_hook
        self._since = time.time()
        self.refused = 0
        """Notifications that could not be done; whoever sent them was not told."""

    def open_profile(self, home: Path | None, profile: str) -> AbstractAsyncContextManager[Runtime]:
        return self.pool.profile(self.home if home is None else home, profile)

    @asynccontextmanager
    async def target(self, call: Call, place: Place | None) -> AsyncIterator[Any]:
        """Whose method ``call`` is, for the length of the block."""
        if call.method.of == "daemon":
            yield self
        elif place is None:
            raise InvalidInput("profile", "this connection named none in its 'hello'")
        else:
            async with self.pool.profile(*place) as runtime:
                yield runtime

    async def welcome(self, greeting: Greeting) -> tuple[Place | None, Welcome]:
        """Open the profile that a client wants.  Raises what opening raises."""
        limits = {"frame": self.limits.frame_bytes, "in_flight": self.limits.in_flight}
        if greeting.profile is None:
            return None, Welcome(os.getpid(), limits=limits)
        home = self.home if greeting.home is None else Path(greeting.home)
        if not home.is_absolute() or "\0" in str(home):
            raise InvalidInput("home", "expected the absolute path of a directory")
        async with self.pool.profile(home, greeting.profile) as runtime:
            config = runtime.config
            deadlines = attrs.asdict(config.deadlines)
            place = str(home), greeting.profile
            return (home, greeting.profile), Welcome(
                os.getpid(), *place, runtime.backend, config_fingerprint(config), deadlines, limits
            )

    async def hook(self, call: HookCall) -> HookReply:
        return await self._answer_hook(call, self.open_profile)

    # -- methods of the daemon --------------------------------------------------------------------------------------------------

    def ping(self) -> None:
        """Answered at once: a sign of life."""

    async def daemon_status(self) -> dict[str, Any]:
        """What the daemon says of itself; nothing here tells of a text."""
        server = self.server
        return {
            "version": __version__,
            "pid": os.getpid(),
            "home": str(self.home),
            "socket": str(self.path),
            "since": self._since,
            "connections": len(server.lines),
            "served": server.served,
            "cut_off": server.cut_off,
            "refused": self.refused,
            "in_flight": sum(line.talk.in_flight for line in server.lines),
            "profiles": [{"home": str(runtime.home), "profile": runtime.profile} for runtime in self.pool.runtimes()],
        }
