"""The one door to structlog, imported at the first record that is written.

memoryd never configures the logging of its host: a :class:`Log` writes its own lines to standard error, or nowhere.  Fields are ids,
counts and error classes; the text of a turn, a memory or a checkpoint is never passed here.
"""

from __future__ import annotations

import sys
from typing import Any, Literal

from memoryd.core import current_scope

__all__ = ["Log"]

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "off": 100}

Level = Literal["debug", "info", "warning", "error"]


class Log:
    """Records of one runtime.  ``level`` *off* writes nothing; ``format`` is *auto*, *console* or *json*."""

    def __init__(self, level: str = "warning", format: str = "auto") -> None:
        self._threshold = _LEVELS[level]
        self._format = format
        self._logger: Any = None

    def debug(self, event: str, **fields: Any) -> None:
        self._write("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._write("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._write("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write("error", event, fields)

    def _write(self, level: Level, event: str, fields: dict[str, Any]) -> None:
        if _LEVELS[level] < self._threshold:
            return
        if self._logger is None:
            self._logger = _make_logger(self._format)
        getattr(self._logger, level)(event, **_scope_ids(), **fields)


def _scope_ids() -> dict[str, str]:
    scope = current_scope()
    names = ("profile", "user", "session", "agent")
    return {name: value for name in names if (value := getattr(scope, name)) is not None}


def _make_logger(format: str) -> Any:
    import structlog

    console = format == "console" or (format == "auto" and sys.stderr.isatty())
    renderer: Any = structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer()
    return structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        context_class=dict,
        cache_logger_on_first_use=False,
    )
