"""Whether what an agent program tells may be recorded: the user can pause, and keep folders and sessions out.

Nothing that is not allowed is written to any file, not even to the spool; recall goes on.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from memoryd.core import Config, Value
from memoryd.errors import ConfigError

__all__ = [
    "IGNORE_FILE", "Consent", "Pause", "consent", "excluded_by", "pause", "paused_now", "read_pauses", "resume", "unpaused_consent",
    "was_paused",
]  # fmt: skip

IGNORE_FILE = ".memoryd-ignore"
_PAUSES = "pauses.json"
_KEPT = 200  # pauses that are remembered: a transcript may be read days after it was written


@attrs.frozen(slots=True, eq=False, repr=False)
class Consent(Value):
    """``why`` is one line where it is not allowed, and empty where it is."""

    allowed: bool
    why: str = ""

    def __bool__(self) -> bool:
        return self.allowed


@attrs.frozen(slots=True, eq=False, repr=False)
class Pause(Value):
    """From ``since`` to ``until``, in microseconds since the epoch; None: until it is resumed."""

    since: int
    until: int | None = None

    def covers(self, at: int) -> bool:
        return self.since <= at and (self.until is None or at < self.until)


def consent(cwd: str, config: Config, memoryd_home: Path, *, environ: Mapping[str, str] | None = None, at: int | None = None) -> Consent:
    """Whether what is said in the working directory ``cwd`` (as the host names it) at ``at`` (microseconds; now) may be recorded."""
    if was_paused(read_pauses(memoryd_home), time.time_ns() // 1000 if at is None else at):
        return Consent(False, "recording is paused ('memoryd resume' ends that)")
    return unpaused_consent(cwd, config, environ)


def unpaused_consent(cwd: str, config: Config, environ: Mapping[str, str] | None = None) -> Consent:
    """As :func:`consent`, but for pauses: what a transcript has from one is known by its times."""
    env = os.environ if environ is None else environ
    if config.capture.private or env.get("MEMORYD_PRIVATE", "") not in ("", "0"):
        return Consent(False, "the session is private (capture.private, or MEMORYD_PRIVATE in the agent's environment)")
    names = list(dict.fromkeys((cwd, os.path.realpath(cwd)))) if cwd.startswith("/") else []
    for name in names:
        if (marked := _marked(name, os.path.lexists)) is not None:
            return Consent(False, f"{marked} is there")
    return _not_excluded(names, config.capture.exclude, env.get("HOME", ""))


def _not_excluded(names: Sequence[str], patterns: Sequence[str], user_home: str) -> Consent:
    if patterns and not names:
        return Consent(False, "the working directory is not known, and capture.exclude names some")
    found = next((pattern for name in names if (pattern := excluded_by(name, patterns, user_home))), "")
    return Consent(not found, f'capture.exclude has "{found}"' if found else "")


def excluded_by(cwd: str, patterns: Sequence[str], user_home: str = "") -> str:
    """The first pattern that ``cwd``, or a folder around it, matches; else an empty text.

    A pattern that begins with ``/`` or ``~`` is a path from there; any other one is a name, or names, that may stand anywhere in a path.
    ``*`` and ``?`` stay inside a name, ``**`` stands for any number of folders.
    """
    return next((pattern for pattern in patterns if _matches(cwd, pattern, user_home)), "")


def _matches(cwd: str, pattern: str, user_home: str) -> bool:
    path = "".join(f"/{folder}" for folder in cwd.split("/") if folder) + "/"
    if pattern == "~" or pattern.startswith("~/"):
        pattern = (user_home.rstrip("/") or "/nowhere") + pattern[1:]
    parts = [part for part in pattern.split("/") if part]
    return re.match(_regex(parts if pattern.startswith("/") else ["**", *parts]), path) is not None


def _regex(parts: Sequence[str]) -> str:
    """Matches a path that ends in ``/``, or the beginning of one."""
    return "(?s)" + "".join("(?:/[^/]+)*" if part == "**" else "/" + _name_regex(part) for part in parts) + "/"


def _name_regex(part: str) -> str:
    return "".join({"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char) for char in part)


def _marked(cwd: str, exists: Callable[[str], bool]) -> str | None:
    """The ignore file that is nearest above ``cwd``."""
    for folder in (cwd, *map(str, Path(cwd).parents)):
        if exists(path := os.path.join(folder, IGNORE_FILE)):
            return path
    return None


# -- pauses ------------------------------------------------------------------------------------------------------------------


def was_paused(pauses: Sequence[Pause], at: int) -> bool:
    """Whether recording was paused at ``at``, in microseconds since the epoch: what a transcript has from then is passed over."""
    return any(pause.covers(at) for pause in pauses)


def read_pauses(memoryd_home: Path) -> tuple[Pause, ...]:
    """Every pause that is remembered.  A file that cannot be read counts as one that has no end: rather too little than too much."""
    try:
        found = json.loads((memoryd_home / _PAUSES).read_bytes())
        return tuple(Pause(int(since), None if until is None else int(until)) for since, until in found)
    except (FileNotFoundError, NotADirectoryError):  # a file in the place of the home holds no pauses
        return ()
    except (OSError, ValueError, TypeError):
        return (Pause(0),)


def paused_now(memoryd_home: Path) -> Pause | None:
    """The pause that goes on, or None."""
    now = time.time_ns() // 1000
    return next((one for one in read_pauses(memoryd_home) if one.covers(now)), None)


def pause(memoryd_home: Path, seconds: float | None = None) -> Pause:
    """Stop recording, for ``seconds`` or until :func:`resume`; a pause that goes on already is made to end then."""
    now = time.time_ns() // 1000
    begun = next((one.since for one in read_pauses(memoryd_home) if one.covers(now)), now)
    made = Pause(begun, None if seconds is None else now + int(seconds * 1_000_000))
    _write(memoryd_home, [*(one for one in read_pauses(memoryd_home) if not one.covers(now)), made])
    return made


def resume(memoryd_home: Path) -> bool:
    """Record again; False where nothing was paused."""
    now, known = time.time_ns() // 1000, read_pauses(memoryd_home)
    if not was_paused(known, now):
        return False
    _write(memoryd_home, [Pause(one.since, now) if one.covers(now) else one for one in known])
    return True


def _write(memoryd_home: Path, pauses: Sequence[Pause]) -> None:
    from memoryd.store import (  # with SQLite, which those who only read pauses do not pay for
        home_directory,
        replace_file,
    )

    path = memoryd_home / _PAUSES
    data = json.dumps([[one.since, one.until] for one in pauses[-_KEPT:]]).encode("ascii")
    home_directory(memoryd_home)
    try:
        replace_file(path, data)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
