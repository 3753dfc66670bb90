"""``memoryd mcp``."""

from __future__ import annotations

import gc
import os
import time
from importlib.util import find_spec
from typing import Protocol

import click

from memoryd.errors import ConfigError

__all__ = ["command"]


class CommonOptions(Protocol):
    """What the command line gives to every command."""

    home: str | None
    session: str | None

    @property
    def profile_name(self) -> str: ...
    @property
    def user_name(self) -> str: ...


@click.command(name="mcp")
@click.pass_obj
def command(options: CommonOptions) -> None:
    """Serve memory to an MCP client over standard input and output, until the client goes away.

    Needs the extra 'mcp'.  An MCP client gives no signal before it compacts its context: what shall be kept
    has to be added.

    \b
    Examples:
      memoryd mcp
      memoryd install mcp --dry-run
    """
    if find_spec("mcp") is None:
        raise ConfigError("mcp: the package mcp is not installed: pip install 'memoryd[mcp]'")
    gc.disable()  # half a thousand modules of the SDK: looking through them for garbage is a sixth of the time
    from memoryd_mcp._server import serve

    gc.freeze()
    gc.enable()
    serve(options.home, options.profile_name, options.user_name, options.session or _new_session())


def _new_session() -> str:
    """A client starts a server for a conversation, or for a day of them."""
    return f"mcp-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
