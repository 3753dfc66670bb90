"""One run of a hook program, understood: the host's dialect, what its payload says, and whose memory it is about."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from memoryd.core import Config, Value
from memoryd.hosts._consent import consent, unpaused_consent
from memoryd.hosts._dialect import Dialect, Heard
from memoryd.hosts._transcript import parsed
from memoryd.settings import load_config, resolve_home
from memoryd.wire import HookCall

__all__ = ["Call", "is_hidden", "size_of", "understood", "why_unrecorded", "why_unrecorded_now"]


def size_of(path: str) -> int:
    """Bytes of the file; 0 where there is none."""
    with suppress(OSError, ValueError):
        return os.stat(path).st_size
    return 0


@attrs.frozen(slots=True, kw_only=True, eq=False, repr=False)
class Call(Value):
    """``environment`` is the host's.  ``unrecorded`` says why nothing of this may be written, empty where it may; ``home_here`` is the
    home that the configuration was read for, once it was."""

    dialect: Dialect
    host: str
    event: str
    heard: Heard
    cwd: str
    environment: Mapping[str, str] = attrs.field(repr=False)
    frame: HookCall = attrs.field(repr=False)
    unrecorded: str = ""
    home_here: Path | None = None

    @property
    def profile(self) -> str:
        return self.environment.get("MEMORYD_PROFILE") or "default"

    @property
    def user(self) -> str:
        return self.environment.get("MEMORYD_USER") or "default"

    @property
    def size(self) -> int:
        """Bytes of the transcript when the hook ran, as the hook program says, else now; 0 where there is none."""
        told = self.environment.get("MEMORYD_TRANSCRIPT_BYTES", "")
        return int(told) if told.isdecimal() and not self.heard.agent else size_of(self.heard.transcript or "")

    @property
    def home(self) -> Path | None:
        """The home that the host's environment names, a relative one from where the hook ran; None where it names none.

        Raises :class:`~memoryd.errors.ConfigError`.
        """
        if not any(self.environment.get(name) for name in ("MEMORYD_HOME", "XDG_DATA_HOME", "HOME")):
            return None
        given = self.environment.get("MEMORYD_HOME", "")
        if given and given != "~" and not given.startswith(("/", "~/")):
            return resolve_home(os.path.join(self.frame.cwd, given))
        return resolve_home(None, self.environment)

    @property
    def environ_here(self) -> Mapping[str, str]:
        """The environment in which the configuration is read: this process's, with the host's words for where memory is kept."""
        return {**os.environ, **self.environment}


def why_unrecorded(call: Call, config: Config, home: Path) -> str:
    """Why nothing of ``call`` may be written; empty where it may."""
    return consent(call.cwd, config, home, environ=call.environment).why


def why_unrecorded_now(call: Call, home: Path) -> str:
    """As :func:`why_unrecorded`, by the settings as they are now in the files and in the host's environment: those that a runtime was
    opened with may be old, and another program's.  Raises :class:`~memoryd.errors.ConfigError`."""
    return why_unrecorded(call, load_config(home, call.profile, environ=call.environ_here).config, home)


def is_hidden(call: Call, home: Path) -> bool:
    """Whether ``call`` is of a session, or a folder, that is kept out of memory now, pauses aside.  Raises as the one above."""
    config = load_config(home, call.profile, environ=call.environ_here).config
    return not unpaused_consent(call.cwd, config, call.environment)


def understood(call: HookCall, dialect: Dialect) -> Call:
    """``call`` in the words of ``dialect``.  A payload that is no JSON object is a problem of the call, not an error here."""
    payload: dict[str, Any] | None = parsed(call.stdin)
    if payload is None:
        reason = "the payload is empty" if not call.stdin.strip() else "the payload is no JSON object"
        heard = Heard(kind=dialect.kind(call.event), problem=reason)
    else:
        heard = dialect.hear(call.event, payload, call.environment)
    return Call(
        dialect=dialect, host=dialect.name, event=call.event, heard=heard, cwd=heard.cwd or call.cwd, environment=call.environment,
        frame=call,
    )  # fmt: skip
