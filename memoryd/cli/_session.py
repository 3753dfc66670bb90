"""Opens the memory for one command, through the daemon or here, or the gate alone, under the scope that the common options say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Literal, TypeVar

import attrs

from memoryd.cli._group import Options

if TYPE_CHECKING:
    from pathlib import Path

    from memoryd.checkpoint import Gate
    from memoryd.runtime import Runtime
    from memoryd.settings import Loaded

__all__ = ["innermost", "loaded", "opened_gate", "run", "take_in_hooks"]

T = TypeVar("T")


def loaded(options: Options) -> Loaded:
    """The configuration for one command.  Log records are for programs that run on: a command writes them where they are asked for."""
    from memoryd.settings import load_config

    found = load_config(options.home, options.profile_name)
    if "logging.level" in found.sources or "logging.file" in found.sources:
        return found
    return attrs.evolve(found, config=attrs.evolve(found.config, logging=attrs.evolve(found.config.logging, level="off")))


def innermost(error: BaseException) -> BaseException:
    """The one error inside the groups that nurseries make; of several the first, but an interruption before anything else."""
    while isinstance(error, BaseExceptionGroup):
        interrupted, _ = error.split(KeyboardInterrupt)
        error = (interrupted or error).exceptions[0]
    return error


def run(options: Options, work: Callable[[Runtime], Awaitable[T]], *, session: str | None = None, here: bool = False) -> T:
    """``work`` with an open memory, in a loop of its own.  ``session`` is the scope's session where the options give none; ``here``
    opens it in this process unless ``--require-daemon`` insists."""
    import trio

    async def main() -> T:
        async with _opened(options, session, here) as runtime:
            return await work(runtime)

    # an interruption between two checkpoints would leave the runtime half-way through its own opening or closing
    return trio.run(main, restrict_keyboard_interrupt_to_checkpoints=True)


@asynccontextmanager
async def _opened(options: Options, session: str | None, here: bool) -> AsyncIterator[Runtime]:
    from memoryd.client import Client
    from memoryd.connect import connect
    from memoryd.core import scope

    found = loaded(options)
    use: Literal["require", "never"] | None = "require" if options.require_daemon else "never" if here else None
    async with connect(found.home, found.profile, found.config, daemon=use) as runtime:
        if not isinstance(runtime, Client):  # the daemon does it itself
            await _take_in_hooks(runtime)
        with scope(user=options.user_name, session=options.session if options.session is not None else session):
            yield runtime


async def _take_in_hooks(runtime: Runtime) -> None:
    """What hooks of agent programs could not tell anybody is part of what every command works on."""
    from memoryd.hosts import has_spool, ingest_hooks
    from memoryd.runtime import open_runtime

    @asynccontextmanager
    async def opened(home: Path | None, profile: str) -> AsyncIterator[Runtime]:
        if (home, profile) in ((None, runtime.profile), (runtime.home, runtime.profile)):
            yield runtime
            return
        async with open_runtime(home=home or runtime.home, profile=profile) as another:
            yield another

    if has_spool(runtime.home):
        await ingest_hooks(runtime.home, opened)


def take_in_hooks(options: Options) -> None:
    """Before a command that reads the log without a runtime: what hooks have spooled is part of it."""
    from memoryd.hosts import has_spool

    async def nothing_else(runtime: Runtime) -> None:
        pass

    if has_spool(loaded(options).home):
        run(options, nothing_else, here=True)  # a daemon would do it in its own time


@contextmanager
def opened_gate(options: Options) -> Iterator[Gate]:
    """The gate of the profile without a runtime: it must answer where the log cannot be opened."""
    from memoryd.runtime import make_gate
    from memoryd.store import open_profile

    found = loaded(options)
    gate = make_gate(open_profile(found.home, found.profile), found.config)
    try:
        yield gate
    finally:
        gate.close()
