"""The one door to structlog, imported at the first record that is written.

memoryd never configures the logging of its host: a :class:`Log` writes its own lines to standard error, to a file of its own, or nowhere.
Fields are ids, counts and error classes; the text of a turn, a memory or a checkpoint is never passed here.
"""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from memoryd.core import current_scope

__all__ = ["Log", "LogFile"]

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "off": 100}
_LARGEST = 4 << 20

Level = Literal["debug", "info", "warning", "error"]


class Log:
    """Records of one runtime.  ``level`` *off* writes nothing; ``format`` is *auto*, *console* or *json*.  With ``path`` they go to that
    file, as JSON, instead of standard error; ``profile`` is named in each."""

    def __init__(self, level: str = "warning", format: str = "auto", path: Path | None = None, profile: str | None = None) -> None:
        self._threshold = _LEVELS[level]
        self._format = format
        self._path = path
        self._bound = {} if profile is None else {"profile": profile}
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
            self._logger = _make_logger(self._format, self._path)
        getattr(self._logger, level)(event, **{**self._bound, **_scope_ids(), **fields})


class LogFile:
    """A private file, to which any number of processes append; each record is one write.  At 4 MiB it is kept as ``.1`` and begun anew.

    It is opened for each record: nothing to close, nothing to inherit, and a file that somebody moved away is simply made again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, line: str) -> None:
        """Append ``line``; where that cannot be done it goes to standard error."""
        try:
            descriptor = self._open()
            try:
                os.write(descriptor, line.encode("utf-8", "backslashreplace"))
                if os.fstat(descriptor).st_size > _LARGEST:
                    self._turn_over(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            StandardError().write(line)

    def flush(self) -> None:
        """Nothing is kept back."""

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self._path, flags, 0o600)

    def _turn_over(self, descriptor: int) -> None:
        """One process does it: the one that has the lock of the file that is still at the path."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if os.path.samestat(os.fstat(descriptor), os.stat(self._path)):
            os.replace(self._path, self._path.with_name(self._path.name + ".1"))


class StandardError:
    """Whatever standard error is at that moment.  A host may have put anything in its place, or nothing; where a record cannot be written
    there, what it is about goes on all the same."""

    def write(self, line: str) -> None:
        if sys.stderr is not None:
            with suppress(OSError, ValueError):  # the reader is gone, or the stream was closed
                sys.stderr.write(line)

    def flush(self) -> None:
        if sys.stderr is not None:
            with suppress(OSError, ValueError):
                sys.stderr.flush()


def _scope_ids() -> dict[str, str]:
    scope = current_scope()
    names = ("profile", "user", "session", "agent")
    return {name: value for name in names if (value := getattr(scope, name)) is not None}


def _make_logger(format: str, path: Path | None) -> Any:
    import structlog

    console = path is None and (format == "console" or (format == "auto" and sys.stderr is not None and sys.stderr.isatty()))
    renderer: Any = structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer()
    file: Any = StandardError() if path is None else LogFile(path)
    return structlog.wrap_logger(
        structlog.WriteLogger(file),
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
