"""Hook dialects of coding agents: from payload to events, from decision to the bytes that the host expects."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoryd_hooks._claude import Claude
    from memoryd_hooks._codex import Codex
    from memoryd_hooks._gemini import Gemini
    from memoryd_hooks._host_claude import ClaudeHost
    from memoryd_hooks._host_codex import CodexHost
    from memoryd_hooks._host_gemini import GeminiHost
    from memoryd_hooks._sources import ClaudeSource, CodexSource, OpenAISource

    claude: Claude
    codex: Codex
    gemini: Gemini
    claude_source: ClaudeSource
    codex_source: CodexSource
    openai_source: OpenAISource
    claude_host: ClaudeHost
    codex_host: CodexHost
    gemini_host: GeminiHost

# name -> the class that it is the one instance of
_HOMES = {
    "claude": ("_claude", "Claude"),
    "codex": ("_codex", "Codex"),
    "gemini": ("_gemini", "Gemini"),
    "claude_source": ("_sources", "ClaudeSource"),
    "codex_source": ("_sources", "CodexSource"),
    "openai_source": ("_sources", "OpenAISource"),
    "claude_host": ("_host_claude", "ClaudeHost"),
    "codex_host": ("_host_codex", "CodexHost"),
    "gemini_host": ("_host_gemini", "GeminiHost"),
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """A host loads when it is chosen."""
    if name not in _HOMES:
        raise AttributeError(f"module 'memoryd_hooks' has no attribute {name!r}")
    module, kind = _HOMES[name]
    value = getattr(import_module(f"memoryd_hooks.{module}"), kind)()
    globals()[name] = value
    return value
