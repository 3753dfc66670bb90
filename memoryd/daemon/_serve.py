"""``memoryd serve``: puts the parts together."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
import trio

from memoryd.core import Config
from memoryd.daemon._activation import Notifier, inherited_sockets
from memoryd.daemon._claim import Claim
from memoryd.daemon._front import Front, OpenProfile
from memoryd.daemon._limits import Limits, raise_open_files
from memoryd.daemon._pool import Pool
from memoryd.daemon._scrape import Render, serve_metrics
from memoryd.daemon._server import Server
from memoryd.daemon._talk import Conversation
from memoryd.log import Log
from memoryd.runtime import open_runtime
from memoryd.settings import log_path
from memoryd.wire import HookCall, HookReply

__all__ = ["serve_until_signal"]

Ready = Callable[[str, int | None], None]


async def serve_until_signal(home: Path, path: Path, config: Config, metrics: tuple[str, int] | None, ready: Ready) -> None:
    """Serve at ``path`` until SIGTERM, SIGINT or SIGHUP; clients that name no other home get profiles of ``home``.

    ``ready(path, metrics_port)`` is called once, when a client that connects is served.  Raises :class:`~memoryd.errors.DaemonRunning`
    where another daemon serves the path, :class:`~memoryd.errors.ConfigError`, :class:`~memoryd.errors.StoreError`.
    """
    notifier = Notifier(os.environ)
    handed = inherited_sockets(os.environ)
    claim = Claim(Path(handed[0].getsockname()) if handed else path)
    try:
        await _serve(home, claim, handed, config, metrics, notifier, ready)
    finally:
        claim.release()


async def _serve(
    home: Path,
    claim: Claim,
    handed: list[socket.socket],
    config: Config,
    metrics: tuple[str, int] | None,
    notifier: Notifier,
    ready: Ready,
) -> None:
    limits = Limits.of(config)
    limits = attrs.evolve(limits, connections=raise_open_files(limits.connections))
    log = Log(config.logging.level, config.logging.format, log_path(home, config.logging.file))
    pool = Pool(open_runtime, log, most=limits.profiles, idle=limits.profile_idle)
    front = Front(home, claim.path, pool, limits, log, _answer_hook)
    server = Server(handed or [claim.listen()], claim, pool, partial(Conversation, front), limits, log, notifier)
    front.server = server
    async with trio.open_nursery() as edge:
        port = None if metrics is None else await edge.start(serve_metrics, *metrics, _renderer(pool))

        def serving() -> None:
            ready(str(claim.path), port)
            edge.start_soon(_go_on, home, front.open_profile, log)

        await server.run(serving)
        edge.cancel_scope.cancel()


async def _go_on(home: Path, open_profile: OpenProfile, log: Log) -> None:
    """What is done while the first client is on its way, and from then on: load what it will need, take in what hooks have spooled."""
    _load_runtime()
    while True:
        try:
            await _keep_hooks(home, open_profile, log)
        except Exception as error:  # noqa: BLE001 - the edge of a child: clients are served all the same
            log.error("hooks.crashed", error=type(error).__name__)
            await trio.sleep(60)


def _load_runtime() -> None:
    from memoryd.runtime import OpenRuntime  # noqa: F401

    gc.collect()
    gc.freeze()  # what is loaded now stays: no collection need look at it again


async def _keep_hooks(home: Path, open_profile: OpenProfile, log: Log) -> None:
    from memoryd.hosts import keep_hooks

    await keep_hooks(home, open_profile, lambda error: log.warning("hooks.spool_waits", error=type(error).__name__))


async def _answer_hook(call: HookCall, open_profile: OpenProfile) -> HookReply:
    from memoryd.hosts import answer_hook  # at the first call of a hook program

    reply: HookReply = await answer_hook(call, open_profile)
    return reply


def _renderer(pool: Pool) -> Render:
    from memoryd.daemon._metrics import renderer  # only where it is asked for: it needs another package

    return renderer(pool)
