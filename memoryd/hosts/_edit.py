"""Plans the edit of a host's settings file, and its exact reversal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, TypeVar

from memoryd.errors import ConfigError
from memoryd.hosts._apply import backups_of
from memoryd.hosts._port import Change

__all__ = ["in_file", "plan_drop", "plan_put", "read_text"]

T = TypeVar("T")
Edit: TypeAlias = Callable[[str], str]


def read_text(path: Path) -> str:
    """A settings file, empty where there is none.  Raises :class:`ConfigError` where it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error


def plan_put(path: Path, put: Edit, why: str) -> tuple[Change, ...]:
    """The change that makes the file what ``put`` makes of it, if it is not so already.  A :class:`ConfigError` gets the file's name."""
    before = read_text(path)
    after = _named(path, put, before)
    return (Change(path, after.encode(), why),) if after != before else ()


def plan_drop(path: Path, memoryd_home: Path, put: Edit, drop: Edit, why: str) -> tuple[Change, ...]:
    """The change that makes the file what it was before ``put``: to the byte where nobody edited it since, else what ``drop`` makes of it.

    A file that an install made, and that then holds nothing, goes.
    """
    before = read_text(path)
    after = _named(path, drop, before)
    if after == before:
        return ()
    earlier = [copy.decode("utf-8", "replace") for copy in backups_of(path, memoryd_home)]
    for text in earlier:
        if _quietly(put, text) == before and _quietly(drop, text) == text:
            return (Change(path, text.encode(), why),)
    made_here = not earlier and not after.strip("{} \t\r\n")
    return (Change(path, None if made_here else after.encode(), why),)


def in_file(path: Path, asked: Callable[[str], T]) -> T:
    """What ``asked`` says of the file's text; a :class:`ConfigError` gets the file's name."""
    return _named(path, asked, read_text(path))


def _named(path: Path, asked: Callable[[str], T], text: str) -> T:
    try:
        return asked(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _quietly(edit: Edit, text: str) -> str | None:
    """None where the text, a backup of who knows when, is nothing to edit."""
    try:
        return edit(text)
    except ConfigError:
        return None
