"""The MCP server: memory as tools and resources for any MCP client."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd_mcp._command import command as command
    from memoryd_mcp._host import host as host

_HOMES = {"command": "_command", "host": "_host"}

__all__ = ["command", "host"]


def __getattr__(name: str) -> Any:
    """Names load when they are first used; the SDK loads when a server starts."""
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd_mcp' has no attribute {name!r}")
    value = getattr(import_module(f"memoryd_mcp.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
