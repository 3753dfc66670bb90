"""Opens a runtime for one command, under the scope that the common options say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from memoryd.cli._group import Options

if TYPE_CHECKING:
    from memoryd.runtime import Runtime

__all__ = ["opened", "run"]

T = TypeVar("T")


def run(options: Options, work: Callable[[Runtime], Awaitable[T]], *, session: str | None = None) -> T:
    """``work`` with an open runtime, in a loop of its own.  ``session`` is the scope's session where the options give none."""
    import trio

    async def main() -> T:
        async with opened(options, session=session) as runtime:
            return await work(runtime)

    return trio.run(main)


@asynccontextmanager
async def opened(options: Options, *, session: str | None = None) -> AsyncIterator[Runtime]:
    from memoryd.core import scope
    from memoryd.runtime import open_runtime

    async with open_runtime(home=options.home, profile=options.profile_name) as runtime:
        with scope(user=options.user_name, session=options.session if options.session is not None else session):
            yield runtime
